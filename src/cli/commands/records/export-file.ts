import { type FileHandle, open } from 'node:fs/promises';
import { cursorOf, fieldsOf } from './record-lines.ts';

/** A file that records are written to, in one of the formats of `export`. */
export interface ExportFile {
  /** The cursor of the last record that an earlier export has written here. */
  readonly after?: string;
  write(lines: readonly string[]): Promise<void>;
  /** Settles when all of it is on disk. */
  finish(): Promise<void>;
  /** Closes it as it is. */
  abandon(): Promise<void>;
}

export const exportFormats = ['ndjson', 'csv', 'parquet'] as const;
export type ExportFormat = (typeof exportFormats)[number];

export const columns = ['record_id', 'device_id', 'kind', 'schema', 'stored_at', 'payload'] as const;
/** More than any line has. */
const lineBytesMax = 256 * 1024;
const newline = 0x0a;

/** Lines as they came. Each has the cursor to go on behind it, so what is there already is kept. */
export async function openLines(path: string): Promise<ExportFile> {
  const handle = await open(path, 'a+', 0o600);
  const last = await lastLine(handle);
  // What a crash has cut off comes again.
  await handle.truncate(last.end);
  return {
    ...(last.text !== '' && { after: cursorOf(last.text) }),
    write: (lines) => handle.appendFile(lines.map((line) => `${line}\n`).join('')),
    finish: () => finish(handle),
    abandon: () => handle.close(),
  };
}

/** The last whole line of a file and where it ends; an empty one where there is none. */
async function lastLine(handle: FileHandle): Promise<{ text: string; end: number }> {
  const { size } = await handle.stat();
  const from = Math.max(0, size - lineBytesMax);
  const bytes = Buffer.alloc(size - from);
  await handle.read(bytes, 0, bytes.length, from);
  const end = bytes.lastIndexOf(newline);
  if (end < 0) return { text: '', end: 0 };
  const begin = end === 0 ? 0 : bytes.lastIndexOf(newline, end - 1) + 1;
  return { text: bytes.toString('utf8', begin, end), end: from + end + 1 };
}

/** With a first line of names; payloads are JSON in one cell. */
export async function openCsv(path: string): Promise<ExportFile> {
  const { stringify } = await import('csv-stringify/sync');
  const handle = await open(path, 'w', 0o600);
  // A cell that begins like a formula would be one to a spreadsheet, and others write these texts.
  const options = { escape_formulas: true, columns: [...columns] };
  await handle.appendFile(stringify([], { ...options, header: true }));
  return {
    write: (lines) => handle.appendFile(stringify(lines.map(fieldsOf), options)),
    finish: () => finish(handle),
    abandon: () => handle.close(),
  };
}

async function finish(handle: FileHandle): Promise<void> {
  await handle.sync();
  await handle.close();
}
