/** A count with its noun, whose plural has an s. */
export function pluralText(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}
