import { useState } from 'preact/hooks';
import type { ListColumns } from '../../../contract/columns/column.ts';
import type { ServerDocument } from '../../../contract/server.ts';
import { Section } from '../../frame/frame.tsx';
import { ListTable } from '../../lists/table.tsx';
import { Choice } from '../../parts/choice.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';

type ConfigurationKey = ServerDocument['configuration'][number];

const choices = [
  ['set', 'Not default'],
  ['all', 'All'],
] as const;

const columns = [
  { name: 'key', label: 'Key', kind: 'word' },
  { name: 'value', label: 'Value', kind: 'word' },
  { name: 'source', label: 'From', kind: 'word' },
  {
    name: 'changed_by',
    label: 'Changed by',
    value: ({ reloadable }) => (reloadable ? 'SIGHUP' : 'a restart'),
    isLesser: true,
  },
] as const satisfies ListColumns<ConfigurationKey>;

/** The configuration in use: each value with where it came from. */
export function Configuration({ keys }: { keys: readonly ConfigurationKey[] }) {
  const [which, setWhich] = useState<'set' | 'all'>('set');
  const [text, setText] = useState('');
  const words = text.toLowerCase();
  const shown = keys.filter(({ key, source, pending, description }) => {
    const isFound = words === '' || `${key} ${description}`.toLowerCase().includes(words);
    return isFound && (which === 'all' || words !== '' || source !== 'default' || pending);
  });
  return (
    <Section
      title="Configuration"
      note={
        <span class="read">changed in its file or environment: fleetpost help reference/configuration</span>
      }
      tools={
        <>
          <input
            class="input"
            aria-label="Find a key"
            placeholder="Find a key"
            value={text}
            maxLength={60}
            spellcheck={false}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
          <Choice label="Which keys" value={which} options={choices} onChange={setWhich} />
        </>
      }
    >
      {shown.length === 0 ? (
        <p class="empty">{words === '' ? 'Every key has its default.' : 'No key fits.'}</p>
      ) : (
        <ListTable
          class="keys"
          columns={columns}
          items={shown}
          keyOf={({ key }) => key}
          cells={{
            key: ({ key, description }) => (
              <>
                <div class="strong">{key}</div>
                <p class="hint">{description}</p>
              </>
            ),
            value: (one) => <Value configured={one} />,
            source: ({ source, environment }) => (
              <span class={source === 'default' ? 'faint' : ''} title={environment}>
                {source}
              </span>
            ),
          }}
        />
      )}
    </Section>
  );
}

function Value({ configured: { value, pending } }: { configured: ConfigurationKey }) {
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return (
    <span class="mono small">
      <Untrusted text={text || 'empty'} lengthMax={500} />
      {pending && <p class="warn small">another value waits for a restart</p>}
    </span>
  );
}
