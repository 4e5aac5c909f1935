import type { ComponentChildren } from 'preact';
import { ErrorBanner } from '../parts/banner.tsx';
import { useSubmit } from '../server/submit.ts';
import { Ask } from './dialogs.tsx';

export interface ConfirmProps {
  title: string;
  /** Says what the state will be afterwards. */
  children: ComponentChildren;
  /** What the button says, if the title is a question. */
  verb?: string;
  /** The other button, where "Cancel" would be a word of the work itself. */
  otherwise?: string;
  work: () => unknown;
  onClose: () => void;
  onDone?: () => void;
}

/** Asks before what cannot be taken back is done. */
export function Confirm(props: ConfirmProps) {
  const { title, children, verb = title, otherwise = 'Cancel', work, onClose, onDone } = props;
  const { error, isBusy, submit } = useSubmit();
  const confirm = async (): Promise<void> => {
    if (!(await submit(async () => work()))) return;
    onDone?.();
    onClose();
  };
  return (
    <Ask title={title} onClose={onClose}>
      <p>{children}</p>
      {error && <ErrorBanner error={error} />}
      <div class="inline">
        <button type="button" class="button is-bad" disabled={isBusy} onClick={confirm}>
          {verb}
        </button>
        <button type="button" class="button is-plain" onClick={onClose}>
          {otherwise}
        </button>
      </div>
    </Ask>
  );
}

/** Asks before what was written is thrown away; `children` say what stays as it is. */
export function AskDiscard(props: { children: string; onClose: () => void; onDiscard: () => void }) {
  return (
    <Confirm
      title="Discard what you have written?"
      verb="Discard"
      otherwise="Go on writing"
      work={props.onDiscard}
      onClose={props.onClose}
    >
      {props.children} What you wrote cannot be had back.
    </Confirm>
  );
}
