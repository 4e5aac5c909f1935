import type { Row, Session } from '../../storage/postgres/connection/database.ts';
import type { Part } from '../parts/part.ts';

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
