/** The words of a field that are parted by commas; undefined: there is none. */
export function wordsIn(text: string): string[] | undefined {
  const words = text.split(/\s*,\s*/).filter(Boolean);
  return words.length === 0 ? undefined : words;
}
