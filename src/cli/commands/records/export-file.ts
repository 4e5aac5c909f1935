import type { FileHandle } from 'node:fs/promises';
import { OperatorError } from '../../../core/errors.ts';
import { openFile } from '../../open-file.ts';
import { endWithReader, printableLines, writeOut } from '../../output.ts';
import { cursorOf, fieldsOf, type RecordFields } from './record-lines.ts';

/** Writes records to a file, in one of the formats of `export`. */
export interface ExportFile {
  /** Cursor of the last record that an interrupted export wrote here. */
  readonly after?: string;
  write(lines: readonly string[]): Promise<void>;
  /** Settles once everything is durable. */
  finish(): Promise<void>;
  /** Closes the file as it is. */
  abandon(): Promise<void>;
}

export const exportFormats = ['ndjson', 'csv', 'parquet'] as const;
export type ExportFormat = (typeof exportFormats)[number];

export const columns = [
  'record_id',
  'device_id',
  'kind',
  'schema',
  'stored_at',
  'recorded_at',
  'payload',
] as const;
/** More than any line can have. */
const lineBytesMax = 256 * 1024;
const newline = 0x0a;

/** Appends NDJSON lines unchanged. Each has a cursor, so that an interrupted export can be resumed. */
export async function openLines(path: string): Promise<ExportFile> {
  return openFile(path, 'a+', async (handle) => {
    const last = await lastLine(handle);
    // Cut off an incomplete line; its record comes again.
    await handle.truncate(last.end);
    return {
      ...(last.text !== '' && { after: cursorOf(last.text) }),
      write: (lines) => handle.appendFile(lines.map((line) => `${line}\n`).join('')),
      finish: () => finish(handle),
      abandon: () => handle.close(),
    };
  });
}

/** Finds the last complete line of a file and where it ends; an empty text if there is none. */
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

/** Turns records into CSV with a header; payloads are JSON in one cell. */
async function csvWriter() {
  const { stringify } = await import('csv-stringify/sync');
  // Untrusted text that begins like a formula would be one to a spreadsheet.
  const options = { escape_formulas: true, columns: [...columns] };
  return {
    header: stringify([], { ...options, header: true }),
    textOf: (lines: readonly string[]) => stringify(lines.map(fieldsOf), options),
  };
}

/** Writes CSV. */
export async function openCsv(path: string): Promise<ExportFile> {
  const { header, textOf } = await csvWriter();
  return openFile(path, 'w', async (handle) => {
    await handle.appendFile(header);
    return {
      write: (lines) => handle.appendFile(textOf(lines)),
      finish: () => finish(handle),
      abandon: () => handle.close(),
    };
  });
}

/** Writes to standard output: bytes as they are, except to a terminal. @throws OperatorError for Parquet. */
export async function openStandardOutput(format: ExportFormat): Promise<ExportFile> {
  if (format === 'parquet') throw new OperatorError('Parquet needs a file: name one with --out.');
  endWithReader();
  const write = (text: string) => writeOut(process.stdout.isTTY ? printableLines(text) : text);
  const done = { finish: async () => {}, abandon: async () => {} };
  if (format === 'ndjson') {
    return { ...done, write: (lines) => write(lines.map((line) => `${line}\n`).join('')) };
  }
  const { header, textOf } = await csvWriter();
  await write(header);
  return { ...done, write: (lines) => write(textOf(lines)) };
}

async function finish(handle: FileHandle): Promise<void> {
  await handle.sync();
  await handle.close();
}

/** Bounds of a row group, which is in memory until it is written. */
const groupRows = 100_000;
const groupBytes = 32 * 1024 * 1024;

const text = (name: string) =>
  ({ name, type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' }) as const;
const timestamp = (name: string, repetition: 'REQUIRED' | 'OPTIONAL') =>
  ({
    name,
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
    repetition_type: repetition,
  }) as const;
const schema = [
  { name: 'records', num_children: columns.length },
  ...(['record_id', 'device_id', 'kind', 'schema'] as const).map(text),
  timestamp('stored_at', 'REQUIRED'),
  timestamp('recorded_at', 'OPTIONAL'),
  // As text: a JSON type would reformat numbers.
  text('payload'),
];

/** Times are timestamps in Parquet, all else is text. */
function cellOf(row: RecordFields, name: (typeof columns)[number]): string | Date | null {
  const text = row[name] ?? null;
  return text !== null && name.endsWith('_at') ? new Date(text) : text;
}

/** Writes Parquet, with Snappy. */
export async function openParquet(path: string): Promise<ExportFile> {
  const { ParquetWriter, fileWriter } = await import('hyparquet-writer');
  // Create the file first: the library opens it and keeps its permissions.
  await openFile(path, 'w', (handle) => handle.close());
  const writer = new ParquetWriter({ writer: fileWriter(path), schema, createdBy: 'fleetpost' });
  let rows: RecordFields[] = [];
  let bytes = 0;
  const flush = async (): Promise<void> => {
    if (rows.length === 0) return;
    const columnData = columns.map((name) => ({
      name,
      data: rows.map((row) => cellOf(row, name)),
      statistics: name !== 'payload',
    }));
    await writer.write({ columnData, rowGroupSize: groupRows });
    rows = [];
    bytes = 0;
  };
  return {
    async write(lines) {
      for (const line of lines) {
        rows.push(fieldsOf(line));
        bytes += line.length;
        if (rows.length >= groupRows || bytes >= groupBytes) await flush();
      }
    },
    async finish() {
      await flush();
      await writer.finish();
      await openFile(path, 'r+', finish);
    },
    abandon: async () => {},
  };
}
