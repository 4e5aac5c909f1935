import { viewOf } from '../connection/bytes.ts';
import type { Row } from '../connection/database.ts';

/** The SQL type of a column, with the type of its values. */
export type Column<V> = string & { readonly values?: V };

/** Columns with their SQL types, and the key. */
interface TableShape<R extends Row> {
  table: string;
  columns: { readonly [C in keyof R]-?: Column<R[C]> };
  key: readonly (keyof R & string)[];
}

/**
 * Ends a lateral subquery, so that its rows are looked up one by one for each row in front of it, in that order.
 * Otherwise the planner trusts its last statistics, and for a queue that was empty then it scans everything, in every
 * batch, until the next statistics (measured: 2.5 times the CPU of settling mail, where 256 wait).
 */
export const oneByOne = 'OFFSET 0';

/** A table with statements for many rows at once, built once, since every batch runs them. */
export class DatabaseTable<R extends Row> {
  readonly name: string;
  /** Selects rows by key. */
  readonly select: string;
  /** Likewise, in the order of the keys, locked against changes. */
  readonly lock: string;
  /**
   * Removes rows by key. Only for rows that nobody else changes meanwhile: one changed since the statement began would
   * stay. Not for partitioned tables, where a ctid names several rows.
   */
  readonly remove: string;
  readonly put: string;
  readonly columnNames: readonly (keyof R & string)[];
  readonly shape: TableShape<R>;

  constructor(shape: TableShape<R>) {
    const { table, columns, key } = shape;
    this.shape = shape;
    this.columnNames = Object.keys(columns) as (keyof R & string)[];
    this.name = table;
    const unnest = (names: readonly (keyof R & string)[]): string => {
      const arrays = names.map((column, index) => `$${index + 1}::${columns[column]}[]`);
      return `unnest(${arrays.join(', ')}) AS k (${names.join(', ')})`;
    };
    const on = key.map((column) => `t.${column} = k.${column}`).join(' AND ');
    const lookUp = (selected: string, end: string): string =>
      `SELECT f.* FROM ${unnest(key)} CROSS JOIN LATERAL (SELECT ${selected} FROM ${table} t WHERE ${on} ${end}) AS f`;
    const columnsOfRow = this.columnNames.map((column) => `t.${column}`).join(', ');
    this.select = lookUp(columnsOfRow, oneByOne);
    this.lock = lookUp(columnsOfRow, 'FOR UPDATE');
    this.remove = `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(${lookUp('t.ctid', oneByOne)}))`;
    const changes = this.columnNames.filter((column) => !key.includes(column));
    const sets = changes.map((column) => `${column} = excluded.${column}`).join(', ');
    this.put =
      `INSERT INTO ${table} (${this.columnNames.join(', ')}) SELECT * FROM ${unnest(this.columnNames)} ` +
      `ON CONFLICT (${key.join(', ')}) DO ${sets === '' ? 'NOTHING' : `UPDATE SET ${sets}`}`;
  }

  /** Parameters of `select`, `lock` and `remove`. */
  keysOf(rows: readonly Partial<R>[]): unknown[][] {
    return this.#valuesOf(this.shape.key, rows);
  }

  /** Parameters of `put`. */
  rowsOf(rows: readonly R[]): unknown[][] {
    return this.#valuesOf(this.columnNames, rows);
  }

  /** A key as text that sorts as the key does. */
  textOf(key: Partial<R>): string {
    return this.shape.key.map((column) => keyText(key[column])).join(' ');
  }

  #valuesOf(columns: readonly (keyof R & string)[], rows: readonly Partial<R>[]): unknown[][] {
    return columns.map((column) => {
      const isJson = this.shape.columns[column] === 'jsonb';
      return rows.map(({ [column]: value }) => (isJson ? JSON.stringify(value) : value));
    });
  }
}

/** The rows of a table. */
export type RowOf<T> = T extends DatabaseTable<infer R> ? R : never;

/** Text that sorts as the column does, for keys of one table: a consistent lock order avoids deadlocks. */
function keyText(value: unknown): string {
  if (typeof value === 'number') return String(value).padStart(16, '0');
  return value instanceof Uint8Array ? viewOf(value).toString('hex') : String(value);
}
