import type { Session } from '../storage/postgres/connection/database.ts';
import { clockMs } from '../storage/postgres/connection/database-time.ts';
import { storedRowTable } from '../storage/postgres/schema/tables.ts';
import type { Rows, StoredChange } from '../storage/tables/table-store.ts';
import { MemoryRows } from './memory-rows.ts';

/** Rows per statement. */
const pageRows = 500;

const nextPage = `
  SELECT name, key, value FROM stored
  WHERE store = $1 AND value IS NOT NULL AND (name, key) > ($2, $3)
  ORDER BY name, key LIMIT ${pageRows}`;
const put = `
  INSERT INTO stored (store, name, key, value, version, at_ms)
  SELECT $1, k.name, k.key, k.value, $2, ${clockMs}
  FROM unnest($3::text[], $4::bytea[], $5::bytea[]) AS k (name, key, value)
  ON CONFLICT (store, name, key)
  DO UPDATE SET value = excluded.value, version = excluded.version, at_ms = excluded.at_ms`;

type StoredRow = {
  name: string;
  key: Buffer;
  value: Buffer | null;
};

/** Queues a write of these rows; rows without a value are retained, without one. */
export function putChanges(
  session: Session,
  store: string,
  version: number,
  changes: readonly StoredChange[],
): Promise<unknown> {
  return session.query(put, [
    store,
    version,
    changes.map(({ name }) => name),
    changes.map(({ key }) => key),
    changes.map(({ value }) => value ?? null),
  ]);
}

/** A row as stored. The database's buffers are parts of what arrived with it, so they are copied. */
export function changeOf({ name, key, value }: StoredRow): StoredChange {
  return { name, key: Buffer.from(key), value: value === null ? undefined : Buffer.from(value) };
}

/** Queues the removal of these rows. */
export function removeRows(
  session: Session,
  store: string,
  changes: readonly StoredChange[],
): Promise<unknown> {
  return session.query(
    storedRowTable.remove,
    storedRowTable.keysOf(changes.map(({ name, key }) => ({ store, name, key }))),
  );
}

/** One store of the table `stored`, in the memory of this node, whose main thread reads it in place. */
export abstract class MemoryStore {
  readonly #rows: ReadonlyMap<string, MemoryRows>;
  /** Rows changed since a load began, which may have read them as they were before. */
  #changedSince: Set<string> | undefined;

  constructor(tables: readonly string[]) {
    this.#rows = new Map(tables.map((name) => [name, new MemoryRows(name)]));
  }

  rows(table: string): Rows {
    const rows = this.#rows.get(table);
    if (rows === undefined) throw new Error(`no table ${table}`);
    return rows;
  }

  /** Does nothing: the memory is current. */
  refresh(): void {}

  /** Nothing, where this node alone writes. */
  async catchUp(): Promise<void> {}

  hasMapSpace(): boolean {
    return true;
  }

  hasDiskToGrow(): boolean {
    return true;
  }

  hasDisk(): boolean {
    return true;
  }

  /**
   * Replaces all rows by what is stored, but for those that change meanwhile, which are newer. Returns them, and those
   * that were removed. @throws ApiError unavailable
   */
  protected async load(session: Session, store: string): Promise<StoredChange[]> {
    const changed = new Set<string>();
    this.#changedSince = changed;
    try {
      const read = await this.#read(session, store);
      const all = [...read].filter(([name]) => !changed.has(name)).map(([, change]) => change);
      this.take(all);
      return all;
    } finally {
      // In the turn of that: what changes in between would be overwritten.
      this.#changedSince = undefined;
    }
  }

  async #read(session: Session, store: string): Promise<Map<string, StoredChange>> {
    const changes = new Map<string, StoredChange>();
    const note = (change: StoredChange): unknown => changes.set(nameOf(change), change);
    for (const [name, rows] of this.#rows) {
      for (const key of rows.keys()) note({ name, key, value: undefined });
    }
    let after: [string, Buffer] = ['', Buffer.alloc(0)];
    for (;;) {
      const page = await session.query<StoredRow>(nextPage, [store, ...after]);
      for (const row of page) note(changeOf(row));
      const last = page.at(-1);
      if (last === undefined || page.length < pageRows) break;
      after = [last.name, last.key];
    }
    return changes;
  }

  /** Returns the changes that `apply` would make, the last one of each row. */
  protected draft(apply: () => void): StoredChange[] {
    const tables = [...this.#rows.values()];
    for (const rows of tables) rows.begin();
    let changes: StoredChange[];
    try {
      apply();
    } finally {
      changes = tables.flatMap((rows) => rows.end());
    }
    return changes;
  }

  /** Applies changes that are committed in the database. */
  protected take(changes: readonly StoredChange[]): void {
    // A store of a newer version may have tables unknown here.
    for (const change of changes) {
      this.#rows.get(change.name)?.take(change);
      this.#changedSince?.add(nameOf(change));
    }
  }
}

function nameOf({ name, key }: StoredChange): string {
  return `${name} ${key.toString('latin1')}`;
}
