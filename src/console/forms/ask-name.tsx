import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Act } from '../parts/act.tsx';
import { Ask } from './dialogs.tsx';
import { Field } from './field.tsx';

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
  const [name, setName] = useState('');
  const [wrong, setWrong] = useState<string | undefined>();
  const begin = (event: SubmitEvent): void => {
    event.preventDefault();
    setWrong(onName(name));
  };
  return (
    <Ask title={title} onClose={onClose}>
      <form onSubmit={begin}>
        <Field
          label="Name"
          required
          maxLength={255}
          pattern="[A-Za-z0-9_\-]+"
          title="Letters, digits, _ and -"
          spellcheck={false}
          value={name}
          onText={setName}
          hint={hint}
        />
        {children}
        {wrong && <p class="wrong">{wrong}</p>}
        <div class="inline">
          <button type="submit" class="button is-main">
            Write it
          </button>
          <Act kind="plain" onClick={onClose}>
            Cancel
          </Act>
        </div>
      </form>
    </Ask>
  );
}
