import { useState } from 'preact/hooks';
import type { Path } from '../../../contract/routes/path.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { Field } from '../../forms/field.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';

export interface SetStateProps {
  path: Path<'/fleets/{fleet_id}/actions/{name}/state/value'>;
  /** The present entry; absent: a key is asked for. */
  entry: { key: string; value: string } | undefined;
  onClose: () => void;
  onDone: () => void;
}

/** Sets one key of what an action keeps. */
export function SetState({ path, entry, onClose, onDone }: SetStateProps) {
  const [key, setKey] = useState(entry?.key ?? '');
  const [value, setValue] = useState(entry?.value ?? '');
  const isJson = isJsonValue(value);
  return (
    <Confirm
      title="Set a key of the state"
      verb="Set"
      kind="main"
      isIncomplete={!isJson}
      work={() => call('PUT', path, { query: { key }, body: `{"value":${value}}` })}
      onClose={onClose}
      onDone={onDone}
      fields={
        <>
          {entry === undefined ? (
            <Field label="Key" class="mono" required maxLength={128} value={key} onText={setKey} />
          ) : (
            <code>
              <Untrusted text={key} />
            </code>
          )}
          <ValueField value={value} isJson={isJson} onChange={setValue} />
        </>
      }
    >
      <span class="soft">Runs under way that have read it start over.</span>
    </Confirm>
  );
}

interface ValueFieldProps {
  value: string;
  isJson: boolean;
  onChange: (value: string) => void;
}

function ValueField({ value, isJson, onChange }: ValueFieldProps) {
  return (
    <div class="field">
      <label for="state-value">Value</label>
      <textarea
        id="state-value"
        class="area is-short"
        spellcheck={false}
        aria-invalid={!isJson}
        value={value}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
      <span class="hint">JSON but null; a text has its quotes</span>
    </div>
  );
}

function isJsonValue(text: string): boolean {
  try {
    return JSON.parse(text) !== null;
  } catch {
    return false;
  }
}
