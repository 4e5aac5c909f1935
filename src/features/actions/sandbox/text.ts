const named: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * An action's text as one harmless line: control characters, those that turn the direction of writing and lone
 * halves of surrogates are written as escapes, so that no terminal and no log obeys them.
 */
export function harmless(text: string, charactersMax: number): string {
  const cut = text.length > charactersMax ? `${text.slice(0, charactersMax - 1)}…` : text;
  return cut.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, escaped);
}

/** The same with its line breaks kept. */
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
