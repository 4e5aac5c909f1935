import { Ask } from '../parts/dialogs.tsx';

export interface DiscardProps {
  /** Says what stays as it is. */
  children: string;
  onClose: () => void;
  onDiscard: () => void;
}

/** Asks before what was written is thrown away. */
export function AskDiscard({ children, onClose, onDiscard }: DiscardProps) {
  const discard = (): void => {
    onClose();
    onDiscard();
  };
  return (
    <Ask title="Discard what you have written?" onClose={onClose}>
      <p>{children} What you wrote cannot be had back.</p>
      <div class="inline">
        <button type="button" class="button is-bad" onClick={discard}>
          Discard
        </button>
        <button type="button" class="button is-plain" onClick={onClose}>
          Go on writing
        </button>
      </div>
    </Ask>
  );
}
