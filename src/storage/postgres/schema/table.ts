import type { Fields, KeptField, RecordOf } from '../../../domain/fields.ts';
import { viewOf } from '../connection/bytes.ts';
import type { Row } from '../connection/database.ts';

/** A column, with the type of its values. */
export interface Column<V> {
  readonly type: string;
  /** Text that sorts by byte. */
  readonly isKey?: boolean;
  /** Its values may be null. */
  readonly isNullable?: boolean;
  /** Likewise, and null is read as undefined. */
  readonly isOptional?: boolean;
  /** The migration that added it to a table that was there; absent or 1: none did. */
  readonly since?: number;
  /** SQL of its value in rows from before it. */
  readonly default?: string;
  readonly values?: V;
}

/** Columns by the names of their values in rows, and the key. A column has the same name in snake case, or one of `names`. */
interface TableShape<R extends Row> {
  table: string;
  columns: { readonly [C in keyof R]-?: Column<R[C]> };
  key: readonly (keyof R & string)[];
  names?: Readonly<Record<string, string>>;
}

const columnTypes: Partial<Record<KeptField['kind'], string>> = {
  uuid: 'bytea',
  bytes: 'bytea',
  time: 'bigint',
  texts: 'jsonb',
};

/** The column of a field. */
function columnOf({ kind, max, isOptional, since }: KeptField): Column<unknown> {
  if (kind === 'count')
    return { type: max > 0x7fffffff ? 'bigint' : max > 0x7fff ? 'integer' : 'smallint', isOptional, since };
  const type = columnTypes[kind] ?? 'text';
  return { type, isOptional, since, ...(kind === 'text' && !isOptional && { default: "''" }) };
}

/** The columns of a record's fields. */
export function columnsOf<F extends Fields>(fields: F): { readonly [N in keyof F]: Column<RecordOf<F>[N]> } {
  const columns = Object.entries(fields).map(([name, field]) => [name, columnOf(field)]);
  return Object.fromEntries(columns);
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
  /** All columns of the table `t`, by the names of their values. */
  readonly columns: string;
  readonly columnNames: readonly (keyof R & string)[];
  readonly shape: TableShape<R>;
  readonly #optional: readonly string[];

  constructor(shape: TableShape<R>) {
    const { table, columns, key } = shape;
    this.shape = shape;
    this.columnNames = Object.keys(columns) as (keyof R & string)[];
    this.#optional = this.columnNames.filter((name) => columns[name].isOptional);
    this.name = table;
    const list = (names: readonly (keyof R & string)[], of: (column: string) => string): string =>
      names.map((name) => of(this.columnOf(name))).join(', ');
    const unnest = (names: readonly (keyof R & string)[]): string => {
      const arrays = names.map((name, index) => `$${index + 1}::${columns[name].type}[]`);
      return `unnest(${arrays.join(', ')}) AS k (${list(names, String)})`;
    };
    const on = key.map((name) => `t.${this.columnOf(name)} = k.${this.columnOf(name)}`).join(' AND ');
    const lookUp = (selected: string, end: string): string =>
      `SELECT f.* FROM ${unnest(key)} CROSS JOIN LATERAL (SELECT ${selected} FROM ${table} t WHERE ${on} ${end}) AS f`;
    this.columns = this.columnsBut();
    this.select = lookUp(this.columns, oneByOne);
    this.lock = lookUp(this.columns, 'FOR UPDATE');
    this.remove = `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(${lookUp('t.ctid', oneByOne)}))`;
    const changes = this.columnNames.filter((name) => !key.includes(name));
    const sets = list(changes, (column) => `${column} = excluded.${column}`);
    this.put =
      `INSERT INTO ${table} (${list(this.columnNames, String)}) SELECT * FROM ${unnest(this.columnNames)} ` +
      `ON CONFLICT (${list(key, String)}) DO ${sets === '' ? 'NOTHING' : `UPDATE SET ${sets}`}`;
  }

  /** Creates the table with the columns that it had then; `storage` is what comes behind them. */
  create(storage = ''): string {
    const key = this.shape.key.map((name) => this.columnOf(name)).join(', ');
    return `CREATE TABLE ${this.name} (${this.#define(1).join(', ')}, PRIMARY KEY (${key})) ${storage};`;
  }

  /** Adds the columns that came with a migration. */
  alter(since: number): string {
    return this.#define(since)
      .map((column) => `ALTER TABLE ${this.name} ADD COLUMN ${column};`)
      .join('\n');
  }

  #define(added: number): string[] {
    const names = this.columnNames.filter((name) => (this.shape.columns[name].since ?? 1) === added);
    return names.map((name) => {
      const { type, isKey, isNullable, isOptional, default: value } = this.shape.columns[name];
      const collation = isKey ? ' COLLATE "C"' : '';
      const none = added === 1 || value === undefined ? '' : ` DEFAULT ${value}`;
      return `${this.columnOf(name)} ${type}${collation}${isNullable || isOptional ? '' : ` NOT NULL${none}`}`;
    });
  }

  /** The column of a value. */
  columnOf(name: keyof R & string): string {
    return this.shape.names?.[name] ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  }

  /** Selects a column of the table `t`, or what stands for it, by the name of its values. */
  selected(name: keyof R & string, instead?: string): string {
    const column = this.columnOf(name);
    const text = instead ?? `t.${column}`;
    return column === name && instead === undefined ? text : `${text} AS "${name}"`;
  }

  /** `columns` without some. */
  columnsBut(...without: readonly (keyof R & string)[]): string {
    const names = this.columnNames.filter((name) => !without.includes(name));
    return names.map((name) => this.selected(name)).join(', ');
  }

  /** Completes rows, or what was selected of them: an absent value is undefined. */
  read<S extends readonly object[]>(rows: S): S {
    for (const row of rows as readonly Record<string, unknown>[]) {
      for (const name of this.#optional) if (row[name] === null) row[name] = undefined;
    }
    return rows;
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
      const isJson = this.shape.columns[column].type === 'jsonb';
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
