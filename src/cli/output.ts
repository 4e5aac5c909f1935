import { plainText } from '../core/plain-text.ts';

/** Prints the one JSON document of `--json`, or else the text for people. */
export function print(options: { json?: boolean }, document: unknown, text: string): void {
  process.stdout.write(`${options.json ? JSON.stringify(document) : printableLines(text)}\n`);
}

/** Names and payloads come from elsewhere: nothing of theirs moves the cursor, or turns round what stands after it. */
export const printable = plainText;

/** Of several lines, which may be indented. */
export function printableLines(text: string): string {
  return text.replace(/[^\n\t]+/g, printable);
}

/** Text as it came, byte for byte, but for a terminal: to that it is `printableLines`. */
export function printRaw(options: { json?: boolean }, text: string): void {
  const isShown = process.stdout.isTTY && !options.json;
  process.stdout.write(`${isShown ? printableLines(text) : text}\n`);
}

/** Aligned columns under their titles; those behind the first `texts` are numbers, which end below each other. */
export function table(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  texts = titles.length,
): string {
  const lines = [titles, ...rows.map((row) => row.map(printable))];
  const widths = titles.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => {
          const width = widths[column] ?? 0;
          return column < texts ? cell.padEnd(width) : cell.padStart(width);
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** The fields of one document, a line each. */
export function fields(document: object): string {
  const entries = Object.entries(document).filter(([, value]) => value !== undefined);
  const width = Math.max(...entries.map(([key]) => key.length));
  const indentation = ' '.repeat(width + 2);
  return entries
    .map(
      ([key, value]) =>
        `${key.padEnd(width)}  ${printableLines(cellText(value)).replaceAll('\n', `\n${indentation}`)}`,
    )
    .join('\n');
}

/** Any value in one line; what there is none of is a dash. */
export function cellText(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(cellText).join(' ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** A list for people: a table, and how to go on where there is more. */
export function listText<T extends object>(
  list: { items: readonly T[]; next: string | null },
  columns: readonly (keyof T & string)[],
  nothing: string,
): string {
  if (list.items.length === 0) return nothing;
  const rows = list.items.map((item) => columns.map((column) => cellText(item[column])));
  const more = list.next === null ? '' : `\nThere are more: go on with --after ${list.next}`;
  return table(columns, rows) + more;
}
