import { OperatorError } from '../../core/errors.ts';
import type { Row, Session } from '../../storage/postgres/connection/database.ts';
import type { FoundRow, Part } from '../parts/part.ts';

/** Rows of a data folder, and the key of the record that they end with. */
export interface FolderRows {
  rows: Row[];
  last: Buffer;
}

/**
 * The rows of a part in the order of its keys, some at a time, behind a key. Each time from a range of its own: none is
 * held open while somebody waits.
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

/** @throws OperatorError where a record is damaged. */
function* checked(part: Part, after: Buffer | undefined): Generator<FoundRow<Row>> {
  try {
    yield* part.read(after);
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `A record of the ${part.name} cannot be read (${(error as Error).message}): "fleetpost verify" says which.`,
    );
  }
}

function bytesOf({ payload, value }: Row): number {
  const long = payload ?? value;
  return long instanceof Uint8Array ? long.length : 0;
}

/** Of one statement. */
export const batchRowsMax = 5_000;
/** Of what is long in them; one row alone may be more. */
export const copyBatchBytesMax = 4 * 1024 * 1024;

/** Columns that hold what others have sent. */
const longColumns = ['payload', 'value'];

/** The rows of a part in order of their keys, some at a time, behind a key (`keyOfRow`). */
export async function* rowsInDatabase(
  session: Pick<Session, 'query'>,
  part: Part,
  after?: readonly unknown[],
): AsyncGenerator<Row[]> {
  const ask = (last?: readonly unknown[]): Promise<Row[]> => {
    const answer = session.query<Row>(selectOf(part, last !== undefined), last);
    // Awaited by the next turn, if there is one.
    answer.catch(() => {});
    return answer;
  };
  for (let asked = ask(after); ; ) {
    const rows = await asked;
    const last = rows.at(-1);
    if (last === undefined) return;
    // The next ones are on their way while these are worked on.
    asked = ask(keyOfRow(part, last));
    yield rows;
  }
}

/** What names a row among those of its table. */
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
  const list = (of: (column: string, index: number) => string): string => key.map(of).join(', ');
  const keys = list((column) => `t.${column}`);
  const long = longColumns.find((column) => column in types && !key.includes(column));
  const conditions = [where ?? 'true'];
  if (hasLast) conditions.push(`(${keys}) > (${list((column, index) => `$${index + 1}::${types[column]}`)})`);
  const selected = table.columnNames.map((column) => `${columns?.[column] ?? `t.${column}`} AS ${column}`);
  const page = `FROM ${table.name} t WHERE ${conditions.join(' AND ')} ORDER BY ${keys} LIMIT ${batchRowsMax}`;
  if (long === undefined) return `SELECT ${selected.join(', ')} ${page}`;
  const bytes = `sum(length(t.${long})) OVER (ORDER BY ${keys})`;
  return `
    SELECT ${table.columnNames.join(', ')} FROM (SELECT ${selected.join(', ')}, ${bytes} AS bytes ${page}) r
    WHERE bytes <= ${copyBatchBytesMax} OR bytes = length(${long})
    ORDER BY ${list((column) => column)}`;
}
