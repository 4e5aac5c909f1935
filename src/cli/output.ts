import { once } from 'node:events';
import { SingleBar } from 'cli-progress';
import type { ListColumns } from '../contract/columns/column.ts';
import type { ListDocument } from '../contract/document.ts';
import { plainText } from '../core/plain-text.ts';

/** Prints the JSON document with `--json`, or else the text. */
export function print(options: { json?: boolean }, document: unknown, text: string): void {
  process.stdout.write(`${options.json ? JSON.stringify(document) : printableLines(text)}\n`);
}

/** Prints the answer's own text with `--json`, since parsing would change large numbers (D11), or else `shown`. */
export function printAnswer(options: { json?: boolean }, text: string, shown: () => string): void {
  process.stdout.write(`${options.json ? text : printableLines(shown())}\n`);
}

/** Escapes control and bidirectional characters: names and payloads are untrusted on a terminal. */
export const printable = plainText;

/** Same for text of several lines, which may be indented. */
export function printableLines(text: string): string {
  return text.replace(/[^\n\t]+/g, printable);
}

/** Prints text byte for byte, except to a terminal, where it is escaped. */
export function printRaw(options: { json?: boolean }, text: string): void {
  const isShown = process.stdout.isTTY && !options.json;
  process.stdout.write(`${isShown ? printableLines(text) : text}\n`);
}

/** Ends the process without an error once the reader of its output, like `head`, has enough. */
export function endWithReader(): void {
  process.stdout.once('error', () => process.exit(0));
}

/** Writes a piece of a long output, as fast as its reader takes it. */
export async function writeOut(chunk: string | Uint8Array): Promise<void> {
  if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
}

/** Creates a progress bar on stderr; undefined where nobody would see it. */
export function progressBar(format: string, { json }: { json?: boolean | undefined }): SingleBar | undefined {
  return json || !process.stderr.isTTY ? undefined : new SingleBar({ format, stream: process.stderr });
}

/** Formats aligned columns under their titles; those after the first `texts` are numbers, aligned right. */
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

/** Formats the fields of a document, one per line. */
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

/** Formats any value in one line; an absent or empty one is a dash. */
export function cellText(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(cellText).join(' ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Formats a list as a table, with how to continue if there is more. */
export function listText<Item>(
  { items, next }: ListDocument<Item>,
  columns: ListColumns<Item>,
  emptyText: string,
): string {
  if (items.length === 0) return emptyText;
  const shown = columns.filter(({ isPageOnly }) => !isPageOnly);
  const rows = items.map((item) =>
    shown.map(({ name, value }) => cellText(value ? value(item) : item[name as keyof Item])),
  );
  const more = next === null ? '' : `\nMore with --after ${next}`;
  return table(
    shown.map(({ name }) => name),
    rows,
  ).concat(more);
}
