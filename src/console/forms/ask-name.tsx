import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { Ask } from './dialogs.tsx';

export interface AskNameProps {
  title: string;
  hint: string;
  /** Returns why it cannot be begun under that name. */
  onName: (name: string) => string | undefined;
  onClose: () => void;
  /** Further fields. */
  children?: ComponentChildren;
}

/** Asks for the name of what is going to be written. */
export function AskName({ title, hint, onName, onClose, children }: AskNameProps) {
  const id = useId();
  const [name, setName] = useState('');
  const [wrong, setWrong] = useState<string | undefined>();
  const begin = (event: SubmitEvent): void => {
    event.preventDefault();
    setWrong(onName(name));
  };
  return (
    <Ask title={title} onClose={onClose}>
      <form onSubmit={begin}>
        <div class="field">
          <label for={id}>Name</label>
          <input
            id={id}
            class="input"
            required
            maxLength={255}
            pattern="[A-Za-z0-9_\-]+"
            title="Letters, digits, _ and -"
            autocomplete="off"
            spellcheck={false}
            value={name}
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
          <span class="hint">{hint}</span>
        </div>
        {children}
        {wrong && <p class="wrong">{wrong}</p>}
        <div class="inline">
          <button type="submit" class="button is-main">
            Write it
          </button>
          <button type="button" class="button is-plain" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Ask>
  );
}
