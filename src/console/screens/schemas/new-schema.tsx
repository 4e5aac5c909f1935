import { useState } from 'preact/hooks';
import { Ask } from '../../parts/dialogs.tsx';
import type { SchemaKindName } from './schema-text.ts';

export interface NewSchemaProps {
  onClose: () => void;
  /** Returns why it cannot be begun. */
  onName: (kind: SchemaKindName, name: string) => string | undefined;
}

const kinds = [
  ['datapoint', 'Datapoint: a measurement, an object with fields'],
  ['message', 'Message: something that happened'],
  ['mail', 'Mail: what is sent to a device'],
] as const;

/** Asks of which kind and name a new schema is. */
export function NewSchema({ onClose, onName }: NewSchemaProps) {
  const [name, setName] = useState('');
  const [kind, setKind] = useState<SchemaKindName>('datapoint');
  const [wrong, setWrong] = useState<string | undefined>();
  const begin = (event: SubmitEvent): void => {
    event.preventDefault();
    setWrong(onName(kind, name));
  };
  return (
    <Ask title="New schema" onClose={onClose}>
      <form onSubmit={begin}>
        <div class="field">
          <label for="new-schema">Name</label>
          <input
            id="new-schema"
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
          <span class="hint">Letters, digits, _ and -, as devices name it in their requests</span>
        </div>
        <div class="field">
          <label for="new-schema-kind">Kind</label>
          <select
            id="new-schema-kind"
            class="select"
            value={kind}
            onChange={({ currentTarget }) => setKind(currentTarget.value as SchemaKindName)}
          >
            {kinds.map(([one, text]) => (
              <option key={one} value={one}>
                {text}
              </option>
            ))}
          </select>
        </div>
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
