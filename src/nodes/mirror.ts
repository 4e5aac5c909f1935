import { mkdirSync, rmSync } from 'node:fs';
import { Environment } from '../storage/lmdb/environment/environment.ts';
import type { StoredChange, Table } from '../storage/lmdb/environment/stored-tables.ts';
import type { Session } from '../storage/postgres/connection/database.ts';
import { clockMs } from '../storage/postgres/connection/database-time.ts';
import { storedRowTable } from '../storage/postgres/schema/tables.ts';

export interface MirrorOptions {
  /** Name of the store in the table `stored`. */
  store: string;
  tables: readonly string[];
  /** Private to this node, and cleared at each start. */
  folder: string;
  mapBytesMax: number;
  diskFreeBytesMin: number;
}

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

function idOf({ name, key }: StoredChange): string {
  return `${name} ${key.toString('latin1')}`;
}

/**
 * A local copy of one store of the table `stored`, in an environment of this node: the main thread reads it in place,
 * and its users know nothing of databases. Nothing is lost with it.
 */
export class Mirror {
  readonly #environment: Environment;
  readonly #tables: ReadonlyMap<string, Table>;
  #changes: StoredChange[] = [];

  constructor({ folder, tables, mapBytesMax, diskFreeBytesMin }: MirrorOptions) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#environment = new Environment({
      path: folder,
      tables,
      mapBytesMax,
      diskFreeBytesMin,
      readersMax: 8,
      commits: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
      unsynced: true,
    });
    this.#tables = new Map(tables.map((name) => [name, this.#recorded(name)]));
  }

  get environment(): Environment {
    return this.#environment;
  }

  /**
   * Replaces the local copy by what is stored. Returns all rows, and the keys of those that were removed. @throws
   * ApiError unavailable
   */
  async load(session: Session, store: string): Promise<StoredChange[]> {
    const changes = new Map<string, StoredChange>();
    const note = (change: StoredChange): unknown => changes.set(idOf(change), change);
    for (const [name, table] of this.#tables) {
      for (const key of table.getKeys({})) note({ name, key: Buffer.from(key), value: undefined });
    }
    let after: [string, Buffer] = ['', Buffer.alloc(0)];
    for (;;) {
      const rows: { name: string; key: Buffer; value: Buffer }[] = await session.query(nextPage, [
        store,
        ...after,
      ]);
      for (const row of rows) note(row);
      const last = rows.at(-1);
      if (last === undefined || rows.length < pageRows) break;
      after = [last.name, last.key];
    }
    const all = [...changes.values()];
    this.put(all);
    return all;
  }

  /** A table that records what is put and removed inside `rehearse`. */
  table(name: string): Table {
    const table = this.#tables.get(name);
    if (table === undefined) throw new Error(`no table ${name}`);
    return table;
  }

  /** Returns the changes `apply` would make, the last one of each row, without making them. */
  rehearse(apply: () => void): StoredChange[] {
    this.#changes = [];
    this.#environment.rehearse(apply);
    const last = new Map(this.#changes.map((change) => [idOf(change), change]));
    this.#changes = [];
    return [...last.values()];
  }

  /** Applies changes that are committed in the database. */
  put(changes: readonly StoredChange[]): void {
    this.#environment.writeSync(() => {
      for (const { name, key, value } of changes) {
        // A store of a newer version may have tables unknown here.
        if (!this.#tables.has(name)) continue;
        const table = this.#environment.table(name);
        if (value === undefined) table.removeSync(key);
        else table.putSync(key, value);
      }
    });
  }

  /** The same table, recording its changes. */
  #recorded(name: string): Table {
    const table = this.#environment.table(name);
    const recorded = Object.create(table) as Table;
    recorded.putSync = ((key: Buffer, value: Buffer) => {
      // The caller may reuse both buffers.
      this.#changes.push({ name, key: Buffer.from(key), value: Buffer.from(value) });
      return table.putSync(key, value);
    }) as Table['putSync'];
    recorded.removeSync = ((key: Buffer) => {
      this.#changes.push({ name, key: Buffer.from(key), value: undefined });
      return table.removeSync(key);
    }) as Table['removeSync'];
    return recorded;
  }
}

/** Read access to a mirror. */
export abstract class MirroredTables {
  protected readonly mirror: Mirror;

  constructor(mirror: Mirror) {
    this.mirror = mirror;
  }

  table(name: string): Table {
    return this.mirror.table(name);
  }

  refresh(): void {
    this.mirror.environment.refresh();
  }

  hasMapSpace(): boolean {
    return this.mirror.environment.hasMapSpace();
  }

  hasDiskToGrow(): boolean {
    return this.mirror.environment.hasDiskToGrow();
  }

  hasDisk(): boolean {
    return this.mirror.environment.hasDisk();
  }
}
