/**
 * Characters forbidden in names and tags, which are shown in terminals, lists and spreadsheets: control characters,
 * separators that some readers take for line ends, those that reverse the text after them, and halves of characters, which
 * no UTF-8 has: PostgreSQL refuses them.
 */
const unplain = '\\p{Cc}\\u2028\\u2029\\p{Bidi_Control}\\p{Cs}';

/** Any other character, for patterns with the flag u. */
export const plainCharacter = `[^${unplain}]`;

const anyUnplain = new RegExp(`[${unplain}]`, 'gu');

/** Replaces each forbidden character with U+FFFD. */
export function plainText(text: string): string {
  return text.replace(anyUnplain, '\u{fffd}');
}
