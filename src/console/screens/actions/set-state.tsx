import { useState } from 'preact/hooks';
import type { Path } from '../../../contract/routes/path.ts';
import { Confirm } from '../../forms/confirm.tsx';
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
            <KeyField value={key} onChange={setKey} />
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

interface TextProps {
  value: string;
  onChange: (value: string) => void;
}

function KeyField({ value, onChange }: TextProps) {
  return (
    <div class="field">
      <label for="state-key">Key</label>
      <input
        id="state-key"
        class="input mono"
        required
        maxLength={128}
        value={value}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </div>
  );
}

function ValueField({ value, isJson, onChange }: TextProps & { isJson: boolean }) {
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
