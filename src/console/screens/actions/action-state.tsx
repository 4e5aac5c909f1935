import { useState } from 'preact/hooks';
import type { StateEntryDocument } from '../../../contract/action-run.ts';
import type { ListDocument } from '../../../contract/document.ts';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner, Loaded } from '../../parts/banner.tsx';
import { Ask } from '../../parts/dialogs.tsx';
import { Untrusted, visible } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { writeExactly } from '../../server/exact-json.ts';
import { useResource } from '../../server/resource.ts';
import { useSubmit } from '../../server/submit.ts';

const pageKeys = 100;
const everySeconds = 5;
const valueCharactersMax = 65_536;

type Asked = { verb: 'set'; key: string; value: string; isNew: boolean } | { verb: 'delete'; key: string };

/** What an action keeps between its runs. */
export function ActionState({ fleetId, name }: { fleetId: string; name: string }) {
  const [after, setAfter] = useState('');
  const [asked, setAsked] = useState<Asked | undefined>();
  const path = `/fleets/${fleetId}/actions/${name}/state`;
  const state = useResource(
    `${path} ${after}`,
    (signal) =>
      call<ListDocument<StateEntryDocument>>('GET', path, { query: { after, limit: pageKeys }, signal }),
    everySeconds,
  );
  return (
    <div class="stack">
      <div>
        <Act scope="admin" onClick={() => setAsked({ verb: 'set', key: '', value: '', isNew: true })}>
          Set a key
        </Act>
      </div>
      <Loaded resource={state}>
        {({ items, next }) => (
          <>
            {items.length === 0 ? (
              <p class="empty">The state is empty. An action writes it by fleet.state.set(key, value).</p>
            ) : (
              <StateTable items={items} onAsk={setAsked} />
            )}
            <nav class="inline" aria-label="Pages">
              {after !== '' && (
                <button type="button" class="button" onClick={() => setAfter('')}>
                  First keys
                </button>
              )}
              {next !== null && (
                <button type="button" class="button" onClick={() => setAfter(next)}>
                  Next keys
                </button>
              )}
            </nav>
          </>
        )}
      </Loaded>
      {asked && (
        <StateDialog path={path} asked={asked} onClose={() => setAsked(undefined)} onDone={state.refresh} />
      )}
    </div>
  );
}

interface StateTableProps {
  items: readonly StateEntryDocument[];
  onAsk: (asked: Asked) => void;
}

function StateTable({ items, onAsk }: StateTableProps) {
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th>Key</th>
            <th>Value</th>
            <th class="number">Change</th>
          </tr>
        </thead>
        <tbody>
          {items.map(({ key, value }) => (
            <tr key={key}>
              <td class="cut">
                <code>
                  <Untrusted text={key} />
                </code>
              </td>
              <td class="cut state-value">
                <code>{visible(writeExactly(value, 300))}</code>
              </td>
              <td class="number">
                <span class="inline end">
                  <Act
                    scope="admin"
                    kind="plain"
                    onClick={() =>
                      onAsk({
                        verb: 'set',
                        key,
                        value: writeExactly(value, valueCharactersMax),
                        isNew: false,
                      })
                    }
                  >
                    Set
                  </Act>
                  <Act scope="admin" kind="plain" onClick={() => onAsk({ verb: 'delete', key })}>
                    Delete
                  </Act>
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface StateDialogProps {
  path: string;
  asked: Asked;
  onClose: () => void;
  onDone: () => void;
}

function StateDialog({ path, asked, onClose, onDone }: StateDialogProps) {
  const [key, setKey] = useState(asked.key);
  const [value, setValue] = useState(asked.verb === 'set' ? asked.value : '');
  const { error, isBusy, submit } = useSubmit();
  const isJson = asked.verb === 'delete' || isJsonValue(value);
  const act = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!isJson) return;
    const query = { key };
    void submit(() =>
      asked.verb === 'delete'
        ? call('DELETE', `${path}/value`, { query })
        : call('PUT', `${path}/value`, { query, body: `{"value":${value}}` }),
    ).then((isDone) => {
      if (!isDone) return;
      onDone();
      onClose();
    });
  };
  return (
    <Ask
      title={asked.verb === 'set' ? 'Set a key of the state' : 'Delete a key of the state'}
      onClose={onClose}
    >
      <form onSubmit={act}>
        <p class="soft">Runs under way that have read it start over.</p>
        {asked.verb === 'set' && asked.isNew ? (
          <div class="field">
            <label for="state-key">Key</label>
            <input
              id="state-key"
              class="input mono"
              required
              maxLength={128}
              value={key}
              onInput={({ currentTarget }) => setKey(currentTarget.value)}
            />
          </div>
        ) : (
          <code>
            <Untrusted text={key} />
          </code>
        )}
        {asked.verb === 'set' && (
          <div class="field">
            <label for="state-value">Value</label>
            <textarea
              id="state-value"
              class="area is-short"
              spellcheck={false}
              aria-invalid={!isJson}
              value={value}
              onInput={({ currentTarget }) => setValue(currentTarget.value)}
            />
            <span class="hint">JSON but null; a text has its quotes</span>
          </div>
        )}
        {error && <ErrorBanner error={error} />}
        <div class="inline">
          <button
            type="submit"
            class={`button ${asked.verb === 'set' ? 'is-main' : 'is-bad'}`}
            aria-disabled={!isJson || isBusy}
          >
            {asked.verb === 'set' ? 'Set' : 'Delete'}
          </button>
          <button type="button" class="button is-plain" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Ask>
  );
}

function isJsonValue(text: string): boolean {
  try {
    return JSON.parse(text) !== null;
  } catch {
    return false;
  }
}
