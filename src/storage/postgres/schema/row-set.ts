import type { Row, Session } from '../connection/database.ts';
import type { DatabaseTable } from './table.ts';

/**
 * Some rows of one table, in memory for one transaction: what it will need is named and loaded at once, looked at
 * and changed in place, and written back at once, a statement for each table whatever the number of rows. (Measured:
 * statements a row cost 3 to 13 times as much.)
 */
export class RowSet<R extends Row> {
  readonly #table: DatabaseTable<R>;
  readonly #wanted = new Map<string, R>();
  /** What is there; undefined for what was looked for and is not. */
  readonly #rows = new Map<string, R | undefined>();
  readonly #changed = new Set<string>();
  /** Of what was changed: a row that is removed has no more than that. */
  readonly #keys = new Map<string, R>();

  constructor(table: DatabaseTable<R>) {
    this.#table = table;
  }

  /** To be loaded: a row, or its key alone. */
  want(key: Partial<R>): void {
    this.#wanted.set(this.#table.textOf(key), key as R);
  }

  /** What is wanted and not known yet, in order of the key; `lock` keeps others from changing it. */
  async load(session: Session, lock = false): Promise<void> {
    const keys = [...this.#wanted]
      .filter(([text]) => !this.#rows.has(text))
      .sort(([a], [b]) => (a < b ? -1 : 1));
    this.#wanted.clear();
    if (keys.length === 0) return;
    for (const [text] of keys) this.#rows.set(text, undefined);
    const { select, lock: locked } = this.#table;
    const given = this.#table.keysOf(keys.map(([, row]) => row));
    const found = await session.query<R>(lock ? locked : select, given);
    for (const row of found) this.#rows.set(this.#table.textOf(row), row);
  }

  /** A row that was read in another way; what is known of it already stays as it is. */
  add(row: R): void {
    const text = this.#table.textOf(row);
    if (this.#rows.get(text) === undefined && !this.#changed.has(text)) this.#rows.set(text, row);
  }

  /** @throws Error for a row that nobody has looked for: to take it for absent would lose it. */
  get(key: Partial<R>): R | undefined {
    const text = this.#table.textOf(key);
    if (!this.#rows.has(text)) throw new Error(`a row of ${this.#table.name} was not loaded`);
    return this.#rows.get(text);
  }

  /** It is known not to be there, and nothing is to be written of it. */
  noteAbsent(key: Partial<R>): void {
    const text = this.#table.textOf(key);
    this.#rows.set(text, undefined);
    this.#changed.delete(text);
  }

  /** All that are known and there. */
  all(): R[] {
    return [...this.#rows.values()].filter((row) => row !== undefined);
  }

  put(row: R): void {
    const text = this.#table.textOf(row);
    this.#rows.set(text, row);
    this.#changed.add(text);
    if (!this.#keys.has(text)) this.#keys.set(text, row);
  }

  remove(key: Partial<R>): void {
    const text = this.#table.textOf(key);
    this.#rows.set(text, undefined);
    this.#changed.add(text);
    if (!this.#keys.has(text)) this.#keys.set(text, key as R);
  }

  /** Writes back what was changed; it is awaited with the commit. */
  store(session: Session): void {
    const gone: R[] = [];
    const there: R[] = [];
    for (const text of [...this.#changed].sort()) {
      const row = this.#rows.get(text);
      if (row === undefined) gone.push(this.#keys.get(text) as R);
      else there.push(row);
    }
    if (gone.length > 0) void session.query(this.#table.remove, this.#table.keysOf(gone));
    if (there.length > 0) void session.query(this.#table.put, this.#table.rowsOf(there));
  }
}
