import { useState } from 'preact/hooks';
import type { ServerDocument } from '../../../contract/server.ts';
import { Section } from '../../frame/frame.tsx';
import { Choice } from '../../parts/choice.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';

type ConfigurationKey = ServerDocument['configuration'][number];

const choices = [
  ['set', 'Not default'],
  ['all', 'All'],
] as const;

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
        <div class="table">
          <table class="keys">
            <thead>
              <tr>
                <th>Key</th>
                <th>Value</th>
                <th>From</th>
                <th class="less">Changed by</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((one) => (
                <ConfigurationRow key={one.key} configured={one} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}

function ConfigurationRow({ configured }: { configured: ConfigurationKey }) {
  const { key, value, source, environment, description, reloadable, pending } = configured;
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return (
    <tr>
      <td>
        <div class="strong">{key}</div>
        <p class="hint">{description}</p>
      </td>
      <td class="mono small">
        <Untrusted text={text || 'empty'} lengthMax={500} />
        {pending && <p class="warn small">another value waits for a restart</p>}
      </td>
      <td class={source === 'default' ? 'faint' : ''} title={environment}>
        {source}
      </td>
      <td class="less soft">{reloadable ? 'SIGHUP' : 'a restart'}</td>
    </tr>
  );
}
