import { useMemo, useState } from 'preact/hooks';
import { ExactNumber } from '../server/exact-json.ts';
import { Act } from './act.tsx';
import { CopyButton } from './copy-button.tsx';
import { escapedJson } from './hidden-characters.ts';
import { visible } from './untrusted.tsx';

/** Characters of a payload that are drawn at first: more would hold up the page. */
const shownCharactersMax = 16_384;
/** Characters of a payload that is shown whole: the server takes 64 KiB, which indenting makes longer. */
const wholeCharactersMax = 4_194_304;
/** Deeper levels are indented no further. */
const indentedLevelsMax = 24;

type Kind = 'key' | 'text' | 'literal' | 'plain';
interface Piece {
  kind: Kind;
  text: string;
}

/** Writes JSON in indented lines, as pieces with their kinds, at most so many characters of it. */
function piecesOf(payload: unknown, lengthMax: number): { pieces: Piece[]; isCut: boolean } {
  const pieces: Piece[] = [];
  let left = lengthMax;
  const put = (kind: Kind, text: string): void => {
    if (left <= 0) return;
    pieces.push({ kind, text: text.slice(0, left) });
    left -= text.length;
  };
  const write = (value: unknown, level: number): void => {
    if (left <= 0) return;
    if (value instanceof ExactNumber) put('literal', value.text);
    else if (typeof value === 'string') put('text', JSON.stringify(value));
    else if (typeof value !== 'object' || value === null) put('literal', String(value));
    else if (Array.isArray(value)) writeMembers('[', value.entries(), ']', level);
    else writeMembers('{', Object.entries(value), '}', level);
  };
  const writeMembers = (
    begin: string,
    members: Iterable<[string | number, unknown]>,
    end: string,
    level: number,
  ): void => {
    put('plain', begin);
    let count = 0;
    for (const [key, member] of members) {
      if (left <= 0) return;
      put('plain', `${count > 0 ? ',' : ''}\n${indent(level + 1)}`);
      if (typeof key === 'string') {
        put('key', JSON.stringify(key));
        put('plain', ': ');
      }
      write(member, level + 1);
      count += 1;
    }
    put('plain', `${count > 0 ? `\n${indent(level)}` : ''}${end}`);
  };
  write(payload, 0);
  return { pieces, isCut: left < 0 };
}

function indent(level: number): string {
  return '  '.repeat(Math.min(level, indentedLevelsMax));
}

/** A payload as its device wrote it: text alone, long ones cut until they are asked for. */
export function Payload({ value }: { value: unknown }) {
  const [isWhole, setWhole] = useState(false);
  const { pieces, isCut } = useMemo(
    () => piecesOf(value, isWhole ? wholeCharactersMax : shownCharactersMax),
    [value, isWhole],
  );
  const copied = (): string => escapedJson(indentedJson(value));
  return (
    <div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keys must reach that */}
      <section class="payload" tabIndex={0} aria-label="Payload">
        <pre>
          {isWhole && pieces.length > 5_000
            ? visible(pieces.map(({ text }) => text).join(''), '\n')
            : pieces.map(({ kind, text }) =>
                kind === 'plain' ? text : <span class={kind}>{visible(text)}</span>,
              )}
          {isCut && '…'}
        </pre>
      </section>
      <div class="inline">
        {isCut && (
          <Act kind="plain" onClick={() => setWhole(true)}>
            Show all
          </Act>
        )}
        <CopyButton text={copied} label="Copy payload" hasLines />
      </div>
    </div>
  );
}

/** A payload in indented lines, its numbers as they were written. */
export function indentedJson(value: unknown): string {
  return piecesOf(value, wholeCharactersMax)
    .pieces.map(({ text }) => text)
    .join('');
}
