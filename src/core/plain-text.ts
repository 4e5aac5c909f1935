/**
 * Characters forbidden in names and tags, which are shown in terminals, lists and spreadsheets: control characters,
 * separators that some readers take for line ends, and those that reverse the text after them.
 */
const unplain = '\\p{Cc}\\u2028\\u2029\\p{Bidi_Control}';

/** Any other character, for patterns with the flag u. */
export const plainCharacter = `[^${unplain}]`;

const anyUnplain = new RegExp(`[${unplain}]`, 'gu');

/** Replaces each forbidden character with U+FFFD. */
export function plainText(text: string): string {
  return text.replace(anyUnplain, '\u{fffd}');
}
