/**
 * Characters that are not seen by themselves, but make one picture of those around them: the joiner of two emoji, and
 * the selector that asks for a picture. Anywhere else they are hidden.
 */
const joining = [
  String.raw`(?<=\p{Extended_Pictographic}\p{Emoji_Modifier}?\ufe0f?)\u200d(?=\p{Extended_Pictographic})`,
  String.raw`(?<=\p{Extended_Pictographic})\ufe0f`,
  String.raw`(?<=[0-9#*])\ufe0f(?=\u20e3)`,
].join('|');

/**
 * Matches characters that are not seen, or are seen elsewhere than they stand: controls, zero-width and bidirectional
 * characters, tags and halves of surrogate pairs. A line end and a tab are among them, for a name is one line.
 */
export const hidden = new RegExp(
  `(?!${joining})(?:${[
    String.raw`\p{Cc}`,
    String.raw`\p{Cf}`,
    String.raw`\p{Cs}`,
    String.raw`\p{Zl}`,
    String.raw`\p{Zp}`,
    // Fillers and selectors that are letters or marks by name, and drawn as nothing.
    String.raw`[\u115f\u1160\u180b-\u180f\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]`,
    // Spaces that are not the space.
    String.raw`(?! )\p{Zs}`,
  ].join('|')})`,
  'gu',
);

/** Names a character as people write it. */
export function codeOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Matches what a terminal may act on when it is pasted there; not tabs and line ends, which some texts are made of. */
const controls = /[^\P{Cc}\t\n]/u;

/** True if a text is copied as it is: a line has no line end either, which would run it. */
export function isCopied(text: string, hasLines: boolean): boolean {
  return !controls.test(text) && (hasLines || !text.includes('\n'));
}

/** Writes the hidden characters of indented JSON as the escapes that its strings have for them. */
export function escapedJson(json: string): string {
  return json.replace(hidden, (character) =>
    character === '\n'
      ? character
      : [...Array(character.length).keys()]
          .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
          .join(''),
  );
}

/**
 * A word of a shell command, quoted where the shell would read more into it. Its hidden characters are escapes: what is
 * copied is what is seen, and a terminal finds no Ctrl+C in it.
 */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  const escaped = text
    .replace(/['\\]/g, '\\$&')
    .replace(hidden, (character) =>
      [...new TextEncoder().encode(character)]
        .map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`)
        .join(''),
    );
  return text.search(hidden) < 0 ? `'${text.replaceAll("'", "'\\''")}'` : `$'${escaped}'`;
}
