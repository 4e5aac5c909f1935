import { viewOf } from '../connection/bytes.ts';
import type { Row } from '../connection/database.ts';

/** Columns with their SQL types, and which of them are the key. */
interface TableShape<R extends Row> {
  table: string;
  columns: { readonly [C in keyof R]-?: string };
  key: readonly (keyof R & string)[];
}

/**
 * At the end of a lateral subquery: its rows are looked up for each row in front of it, in that order, and in no other
 * way. A planner that is free goes by what it counted last, and of a queue that was empty then it reads all, for each
 * batch, until it counts again (measured: 2.5 times the CPU of settling mail, where 256 wait).
 */
export const oneByOne = 'OFFSET 0';

/** A table with the statements that work on many of its rows at once, made once: they are asked in every batch. */
export class DatabaseTable<R extends Row> {
  readonly name: string;
  /** Those of given keys. */
  readonly select: string;
  /** The same, in the order of what is given, kept from being changed by others. */
  readonly lock: string;
  /**
   * Of rows that nobody else changes meanwhile: one that was changed since the statement began would stay. Not of tables
   * in parts, where a place names several rows.
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

  /** What `select`, `lock` and `remove` are given. */
  keysOf(rows: readonly Partial<R>[]): unknown[][] {
    return this.#valuesOf(this.shape.key, rows);
  }

  /** What `put` is given. */
  rowsOf(rows: readonly R[]): unknown[][] {
    return this.#valuesOf(this.columnNames, rows);
  }

  /** Of a key: sorts as the key does. */
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

/** Sorts as the column does, for keys of one kind: what locks in this order cannot lock against another. */
function keyText(value: unknown): string {
  if (typeof value === 'number') return String(value).padStart(16, '0');
  return value instanceof Uint8Array ? viewOf(value).toString('hex') : String(value);
}
