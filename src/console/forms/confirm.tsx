import type { ComponentChildren } from 'preact';
import { ErrorBanner } from '../parts/banner.tsx';
import { Ask } from '../parts/dialogs.tsx';
import { useSubmit } from '../server/submit.ts';

export interface ConfirmProps {
  title: string;
  /** Says what the state will be afterwards. */
  children: ComponentChildren;
  /** The other button, where "Cancel" would be a word of the work itself. */
  otherwise?: string;
  work: () => Promise<unknown>;
  onClose: () => void;
  onDone: () => void;
}

/** Asks before what cannot be taken back is done. */
export function Confirm({ title, children, otherwise = 'Cancel', work, onClose, onDone }: ConfirmProps) {
  const { error, isBusy, submit } = useSubmit();
  const confirm = async (): Promise<void> => {
    if (!(await submit(work))) return;
    onDone();
    onClose();
  };
  return (
    <Ask title={title} onClose={onClose}>
      <p>{children}</p>
      {error && <ErrorBanner error={error} />}
      <div class="inline">
        <button type="button" class="button is-bad" disabled={isBusy} onClick={confirm}>
          {title}
        </button>
        <button type="button" class="button is-plain" onClick={onClose}>
          {otherwise}
        </button>
      </div>
    </Ask>
  );
}
