import { OperatorError } from '../../core/errors.ts';
import type { Row, Session } from '../../storage/postgres/connection/database.ts';
import type { Part } from '../parts/part.ts';

/** Rows of a data folder, and the key of their last record. */
export interface FolderRows {
  rows: Row[];
  last: Buffer;
}

/**
 * Reads the rows of a part in key order, in batches, from behind a key. Each batch opens a range of its own: none stays
 * open during a wait.
 */
export function* rowsInFolder(part: Part, after?: Buffer): Generator<FolderRows> {
  for (let last = after; ; ) {
    const batch = take(part, last);
    if (batch === undefined) return;
    last = batch.last;
    yield batch;
  }
}

function take(part: Part, after: Buffer | undefined): FolderRows | undefined {
  const rows: Row[] = [];
  let last: Buffer | undefined;
  let bytes = 0;
  for (const found of checked(part, after)) {
    last = Buffer.from(found.key);
    for (const row of found.rows) {
      rows.push(row);
      bytes += bytesOf(row);
    }
    if (rows.length >= batchRowsMax || bytes >= copyBatchBytesMax) break;
  }
  return last === undefined ? undefined : { rows, last };
}

/** @throws OperatorError for a damaged record */
function* checked(part: Part, after: Buffer | undefined): Generator<{ key: Buffer; rows: Row[] }> {
  try {
    const range = after === undefined ? {} : { start: after, exclusiveStart: true };
    for (const record of part.source.getRange(range)) yield { key: record.key, rows: part.rowsOf(record) };
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `A record of the ${part.name} cannot be read (${(error as Error).message}). Run "fleetpost verify" to find it.`,
    );
  }
}

function bytesOf({ payload, value }: Row): number {
  const long = payload ?? value;
  return long instanceof Uint8Array ? long.length : 0;
}

/** Maximum rows per statement. */
export const batchRowsMax = 5_000;
/** Maximum bytes of long columns per batch; a single row may be larger. */
export const copyBatchBytesMax = 4 * 1024 * 1024;

/** Columns of unbounded size. */
const longColumns = ['payload', 'value'];

/** Reads the rows of a part in key order, in batches, from behind a key (`keyOfRow`). */
export async function* rowsInDatabase(
  session: Pick<Session, 'query'>,
  part: Part,
  after?: readonly unknown[],
): AsyncGenerator<Row[]> {
  const ask = (last?: readonly unknown[]): Promise<Row[]> => {
    const answer = session.query<Row>(selectOf(part, last !== undefined), last);
    // Awaited by the next iteration, if any.
    answer.catch(() => {});
    return answer;
  };
  for (let asked = ask(after); ; ) {
    const rows = await asked;
    const last = rows.at(-1);
    if (last === undefined) return;
    // Fetches the next rows while these are processed.
    asked = ask(keyOfRow(part, last));
    yield part.table.read(rows);
  }
}

/** Primary key of a row. */
export function keyOfRow({ table }: Part, row: Row): unknown[] {
  return table.shape.key.map((column) => row[column]);
}

export async function countInDatabase(session: Pick<Session, 'query'>, part: Part): Promise<number> {
  const text = `SELECT count(*) AS count FROM ${part.table.name} t WHERE ${part.where ?? 'true'}`;
  const [row] = await session.query<{ count: number }>(text);
  return row?.count ?? 0;
}

function selectOf({ table, where, columns }: Part, hasLast: boolean): string {
  const { key, columns: types } = table.shape;
  const keys = key.map((name) => `t.${table.columnOf(name)}`).join(', ');
  const long = longColumns.find((column) => column in types && !key.includes(column));
  const conditions = [where ?? 'true'];
  if (hasLast) {
    conditions.push(
      `(${keys}) > (${key.map((name, index) => `$${index + 1}::${types[name]?.type}`).join(', ')})`,
    );
  }
  const selected = table.columnNames.map((name) => table.selected(name, columns?.[name]));
  const page = `FROM ${table.name} t WHERE ${conditions.join(' AND ')} ORDER BY ${keys} LIMIT ${batchRowsMax}`;
  if (long === undefined) return `SELECT ${selected.join(', ')} ${page}`;
  const quoted = (names: readonly string[]): string => names.map((name) => `"${name}"`).join(', ');
  const bytes = `sum(length(t.${long})) OVER (ORDER BY ${keys})`;
  return `
    SELECT ${quoted(table.columnNames)} FROM (SELECT ${selected.join(', ')}, ${bytes} AS bytes ${page}) r
    WHERE bytes <= ${copyBatchBytesMax} OR bytes = length(${long})
    ORDER BY ${quoted(key)}`;
}
