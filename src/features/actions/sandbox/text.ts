const named: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * Turns an action's text into one harmless line. Control characters, bidirectional controls and lone surrogates are
 * escaped, so that no terminal and no log interprets them.
 */
export function harmless(text: string, charactersMax: number): string {
  const cut = text.length > charactersMax ? `${text.slice(0, charactersMax - 1)}…` : text;
  return cut.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, escaped);
}

/** Does the same, keeping line breaks. */
export function harmlessLines(text: string, charactersMax: number): string {
  return text
    .slice(0, charactersMax)
    .split('\n')
    .map((line) => harmless(line, charactersMax))
    .join('\n')
    .slice(0, charactersMax);
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return named[character] ?? `\\u{${code.toString(16)}}`;
}
