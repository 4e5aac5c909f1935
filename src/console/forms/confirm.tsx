import type { ComponentChildren } from 'preact';
import { Act } from '../parts/act.tsx';
import { ErrorBanner } from '../parts/banner.tsx';
import { useSubmit } from '../server/submit.ts';
import { Ask } from './dialogs.tsx';
import { useTypedCount } from './typed-count.tsx';

export interface ConfirmProps {
  title: string;
  kind?: 'main' | 'bad';
  /** Says what the state will be afterwards. */
  children: ComponentChildren;
  /** Fields to fill in besides the yes. */
  fields?: ComponentChildren;
  isIncomplete?: boolean;
  /** Begins at the button that does nothing, as what is bad does. */
  isCareful?: boolean;
  /** How many it is done with: many want their number typed. */
  count?: number | undefined;
  /** Label of the button, if that is not the title. */
  verb?: string;
  /** The other button, where "Cancel" would be a word of the work itself. */
  otherwise?: string;
  work: () => unknown;
  onClose: () => void;
  onDone?: () => void;
}

/** Asks before something is done: what cannot be taken back, unless its kind says otherwise. */
export function Confirm(props: ConfirmProps) {
  const { title, kind = 'bad', children, fields, isIncomplete = false, verb = title } = props;
  const { otherwise = 'Cancel', isCareful = false, count, work, onClose, onDone } = props;
  const typed = useTypedCount(count);
  const isHeld = isIncomplete || typed.isMissing;
  const { error, isBusy, submit } = useSubmit();
  const confirm = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (isHeld || !(await submit(async () => work()))) return;
    onDone?.();
    onClose();
  };
  return (
    <Ask title={title} onClose={onClose}>
      <form onSubmit={confirm}>
        <p>{children}</p>
        {fields}
        {typed.field}
        {error && <ErrorBanner error={error} />}
        <div class="inline">
          <button type="submit" class={`button is-${kind}`} aria-disabled={isHeld} disabled={isBusy}>
            {verb}
          </button>
          <Act kind="plain" onClick={onClose} isSafe={kind === 'bad' || isCareful}>
            {otherwise}
          </Act>
        </div>
      </form>
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
