/**
 * Characters that names and tags cannot have, for they are shown in terminals, lists and spreadsheets: control characters,
 * the separators that some readers take for the end of a line, and those that turn round the text after them.
 */
const unplain = '\\p{Cc}\\u2028\\u2029\\p{Bidi_Control}';

/** Any other one, for patterns with the flag u. */
export const plainCharacter = `[^${unplain}]`;

const anyUnplain = new RegExp(`[${unplain}]`, 'gu');

/** With a mark in the place of each. */
export function plainText(text: string): string {
  return text.replace(anyUnplain, '\u{fffd}');
}
