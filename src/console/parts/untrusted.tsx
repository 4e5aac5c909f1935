import type { ComponentChildren } from 'preact';
import { codeOf, hidden } from './hidden-characters.ts';

/** Text with its hidden characters as their codes, for where there is only text: a title, a label. */
export function shownText(text: string, lengthMax = 300): string {
  const shown = text.replace(hidden, (character) => `⟨${codeOf(character)}⟩`);
  return shown.length > lengthMax ? `${shown.slice(0, lengthMax)}…` : shown;
}

/** Characters of text from outside that are drawn with hidden ones made visible; `allowed` are left as they are. */
export function visible(text: string, allowed = ''): ComponentChildren {
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const { 0: character, index } of text.matchAll(hidden)) {
    if (allowed.includes(character)) continue;
    parts.push(
      text.slice(from, index),
      <span class="hidden-character" title="A character that is not seen">
        {codeOf(character)}
      </span>,
    );
    from = index + character.length;
  }
  if (parts.length === 0) return text;
  parts.push(text.slice(from));
  return parts;
}

export interface UntrustedProps {
  text: string;
  lengthMax?: number;
}

/** A name, a tag, a message: whatever somebody else wrote, on one line, cut, its hidden characters made visible. */
export function Untrusted({ text, lengthMax = 256 }: UntrustedProps) {
  const isCut = text.length > lengthMax;
  return (
    <bdi class="untrusted" title={isCut ? shownText(text, 2_000) : undefined}>
      {visible(isCut ? text.slice(0, lengthMax) : text)}
      {isCut && '…'}
    </bdi>
  );
}
