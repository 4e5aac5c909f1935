import { useState } from 'preact/hooks';
import { apiUrl, type Query } from '../server/client.ts';
import { CopyButton } from './copy-button.tsx';
import { shellWord } from './hidden-characters.ts';

export interface CommandsProps {
  /** Words after `fleetpost`. */
  command: readonly string[];
  /** The request that does the same. */
  request: { method?: string; path: string; query?: Query; body?: unknown };
}

function curlOf({ method = 'GET', path, query, body }: CommandsProps['request']): string {
  const words = ['curl', '-H "Authorization: Bearer $FLEETPOST_TOKEN"'];
  if (method !== 'GET') words.push(`-X ${method}`);
  if (body !== undefined)
    words.push(
      `-H 'Content-Type: application/json' -d ${shellWord(typeof body === 'string' ? body : JSON.stringify(body))}`,
    );
  words.push(shellWord(location.origin + apiUrl(path, query)));
  return words.join(' ');
}

/** The commands that do what the screen does. */
export function Commands({ command, request }: CommandsProps) {
  const lines = [
    ['CLI', ['fleetpost', ...command.map(shellWord)].join(' ')],
    ['HTTP', curlOf(request)],
  ] as const;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a group of lines, of which a screen may have several
    <div
      class="commands"
      role="group"
      aria-label={`The same in a terminal: ${command.slice(0, 2).join(' ')}`}
    >
      {lines.map(([name, text]) => (
        <>
          <span key={name}>{name}</span>
          <Line key={text} name={name} text={text} />
        </>
      ))}
    </div>
  );
}

/** One line, cut where it ends; whole from the first focus on: if it were cut again, what is beside it would move. */
function Line({ name, text }: { name: string; text: string }) {
  const [isWhole, setWhole] = useState(false);
  return (
    <span class="line">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the whole of a cut one is shown once it has the focus */}
      <code tabIndex={0} title={text} class={isWhole ? 'is-whole' : ''} onFocus={() => setWhole(true)}>
        {text}
      </code>
      <CopyButton text={text} label={`Copy the ${name} command`} />
    </span>
  );
}
