import { parse } from 'csv-parse/sync';
import type { Static } from 'typebox';
import { deviceLine } from '../../contract/device.ts';
import { descriptionFields } from '../../domain/devices/device-fields.ts';
import type { Fields } from '../../domain/fields.ts';
import { validatorOf } from '../request/compiled-schemas.ts';

const newline = 0x0a;
const carriageReturn = 0x0d;

/** Lines split off at once, all of them empty perhaps: a millisecond of this thread. */
export const linesSplitMax = 1_000;

/** One line of a body, without its line break. */
export interface BodyLine {
  /** Counted from 1. */
  number: number;
  /** Undefined if the line is too long. It is the last then. */
  bytes: Buffer | undefined;
}

/**
 * Splits a body into lines as it arrives. Yields those that each chunk completes in pieces, at least one for a chunk,
 * which may be empty: between two of them the caller gives others their turn. Buffers at most one line of that length
 * and the chunk. Ends with a line that is longer, as soon as it is, since it may go on without end.
 */
export async function* bodyLines(
  body: AsyncIterable<Buffer>,
  lineBytesMax: number,
): AsyncGenerator<BodyLine[]> {
  let number = 0;
  let begun: Buffer[] = [];
  let begunBytes = 0;
  const take = (part: Buffer): void => {
    begunBytes += part.length;
    if (part.length > 0) begun.push(Buffer.from(part));
  };
  const end = (): BodyLine => {
    number += 1;
    const bytes = begun.length === 1 ? (begun[0] as Buffer) : Buffer.concat(begun);
    [begun, begunBytes] = [[], 0];
    return { number, bytes: bytes.at(-1) === carriageReturn ? bytes.subarray(0, -1) : bytes };
  };
  for await (const chunk of body) {
    let lines: BodyLine[] = [];
    for (let from = 0; from < chunk.length; ) {
      const at = chunk.indexOf(newline, from);
      take(chunk.subarray(from, at < 0 ? chunk.length : at));
      if (begunBytes > lineBytesMax) {
        yield [...lines, { number: number + 1, bytes: undefined }];
        return;
      }
      if (at < 0) break;
      lines.push(end());
      from = at + 1;
      if (lines.length < linesSplitMax) continue;
      yield lines;
      lines = [];
    }
    yield lines;
  }
  if (begunBytes > 0) yield [end()];
}

export type DeviceLine = Static<typeof deviceLine>;

/** Fields of an export that an import ignores. */
const ignoredFields: readonly string[] = ['fleet_id', 'created_at'];
const lineFields = Object.keys(deviceLine.properties);

const validate = validatorOf(deviceLine, 'body');
const isDeviceLine = (fields: Record<string, unknown>): fields is DeviceLine => validate(fields);

/** A malformed line. Not an Error, whose stack nobody would read and would cost more than the rest of the line. */
export class BadLine {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true });

function textOf(bytes: Buffer): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new BadLine('The line is not UTF-8.');
  }
}

/** @throws BadLine */
function checked(fields: Record<string, unknown>): DeviceLine {
  for (const field of ignoredFields) delete fields[field];
  if (isDeviceLine(fields)) {
    if (fields.secret === undefined || fields.secret_digest === undefined) return fields;
    throw new BadLine('Give secret or secret_digest, not both.');
  }
  const [first] = validate.errors ?? [];
  const field = first?.instancePath.slice(1).split('/')[0] ?? '';
  // An unknown field name is user input and is not repeated.
  throw new BadLine(
    field === '' ? `Unknown field. Known fields: ${lineFields.join(', ')}.` : `${field} ${first?.message}.`,
  );
}

/** Reads one line as a device. @throws BadLine */
export type LineReader = (line: Buffer) => DeviceLine;

export function readJsonLine(line: Buffer): DeviceLine {
  let value: unknown;
  try {
    value = JSON.parse(textOf(line));
  } catch (error) {
    throw error instanceof BadLine ? error : new BadLine('The line is not JSON.');
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return checked(value as Record<string, unknown>);
  }
  throw new BadLine('The line is not a JSON object.');
}

function splitCsv(line: Buffer): string[] {
  const text = textOf(line);
  // Most lines have no quotes and need no parser.
  if (!text.includes('"')) return text.split(',');
  try {
    const [cells = []] = parse(text, { relax_column_count: true }) as string[][];
    return cells;
  } catch {
    throw new BadLine('The quotes of the line do not match. A field must not contain a line break.');
  }
}

/** Creates a reader from the header, the first line. An empty cell is an absent field. @throws BadLine */
export function csvReader(header: Buffer): LineReader {
  const columns = splitCsv(header).map((cell) => cell.replace(/^\ufeff/, '').trim());
  const unknown = columns.find((column) => !lineFields.includes(column) && !ignoredFields.includes(column));
  if (unknown !== undefined || new Set(columns).size < columns.length) {
    throw new BadLine(
      `The first line must name the columns, each once. Known columns: ${lineFields.join(', ')}.`,
    );
  }
  return (line) => {
    const cells = splitCsv(line);
    if (cells.length > columns.length) throw new BadLine('The line has more fields than there are columns.');
    const fields: Record<string, unknown> = {};
    for (const [index, cell] of cells.entries()) {
      const column = columns[index];
      if (column !== undefined && cell !== '') fields[column] = ofCell(column, cell);
    }
    return checked(fields);
  };
}

const fields: Fields = descriptionFields;

/**
 * Parses a cell: a text without the mark that an export puts before a formula; several separated by semicolons, or a JSON
 * array if one contains a semicolon.
 */
function ofCell(column: string, cell: string): unknown {
  if (column === 'enabled') return cell === 'true' ? true : cell === 'false' ? false : cell;
  const kind = fields[column]?.kind;
  if (kind === 'text') return cell.startsWith(formulaMark) && formula.test(cell) ? cell.slice(1) : cell;
  if (kind !== 'texts') return cell;
  if (!cell.startsWith('[')) return cell.split(';');
  try {
    return JSON.parse(cell);
  } catch {
    throw new BadLine(`${column} starts like a JSON array but is not one.`);
  }
}

export function csvLine(cells: readonly string[]): string {
  return `${cells.map((cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(',')}\n`;
}

/** Matches a cell that a spreadsheet would take for a formula, or that already has the mark. */
const formula = /^'*[=+\-@\uff1d\uff0b\uff0d\uff20]/;
const formulaMark = "'";

/**
 * Formats a field as `ofCell` parses it: a text with a mark before what a spreadsheet would take for a formula, since
 * devices may name themselves.
 */
export function cellOf(value: string | readonly string[]): string {
  if (typeof value === 'string') return formula.test(value) ? formulaMark + value : value;
  const isPlain =
    value.every((text) => !/[;\p{Cc}]/u.test(text) && !formula.test(text)) && !value[0]?.startsWith('[');
  return isPlain ? value.join(';') : JSON.stringify(value);
}
