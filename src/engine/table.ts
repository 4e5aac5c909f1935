import { viewOf } from './bytes.ts';
import type { Row } from './database.ts';

/** Columns with their SQL types, and which of them are the key. */
interface TableShape<R extends Row> {
  table: string;
  columns: { readonly [C in keyof R]-?: string };
  key: readonly (keyof R & string)[];
}

/** A table with the statements that work on many of its rows at once, made once: they are asked in every batch. */
export class Table<R extends Row> {
  readonly name: string;
  /** Those of given keys. */
  readonly select: string;
  /** The same, in order of the key, kept from being changed by others. */
  readonly lock: string;
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
    const of = (alias: string, names: readonly string[]): string =>
      names.map((column) => `${alias}.${column}`).join(', ');
    const on = key.map((column) => `t.${column} = k.${column}`).join(' AND ');
    this.select = `SELECT ${of('t', this.columnNames)} FROM ${unnest(key)} JOIN ${table} t ON ${on}`;
    this.lock = `${this.select} ORDER BY ${of('t', key)} FOR UPDATE OF t`;
    this.remove = `DELETE FROM ${table} t USING ${unnest(key)} WHERE ${on}`;
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
