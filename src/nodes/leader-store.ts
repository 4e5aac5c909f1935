import { Mutex } from '../core/async.ts';
import { unavailable } from '../core/errors.ts';
import type { StoredTables } from '../storage/lmdb/environment/stored-tables.ts';
import type { Database } from '../storage/postgres/connection/database.ts';
import { Mirror, MirroredTables, type MirrorOptions, putChanges, removeRows } from './mirror.ts';

export interface LeaderStoreOptions extends MirrorOptions {
  database: Database;
  /** Of the lease that must be held for each commit. */
  lease: { name: string; holder: string };
  /** Another node has the lease, or nobody knows whether a commit was done: what is here may be out of date. */
  onLost(): void;
}

/** Held until the commit: whoever takes the lease meanwhile waits, and reads what was written before. */
const isHolder = 'SELECT name FROM lease WHERE name = $1 AND holder = $2 FOR SHARE';

/**
 * Tables that one node at a time reads and changes, the one with the lease, which each of its commits makes sure of.
 * Where it cannot be sure of a commit it gives all up, as if the process had died: whoever takes the lease then, be it
 * itself, begins by what is stored.
 */
export class LeaderStore extends MirroredTables implements StoredTables {
  readonly #options: LeaderStoreOptions;
  #isLost = false;
  readonly #writes = new Mutex();

  private constructor(options: LeaderStoreOptions) {
    super(new Mirror(options));
    this.#options = options;
  }

  /** With all that there is; the lease is held already. @throws ApiError unavailable */
  static async open(options: LeaderStoreOptions): Promise<LeaderStore> {
    const tables = new LeaderStore(options);
    try {
      await tables.mirror.load(options.database, options.store);
    } catch (error) {
      await tables.close();
      throw error;
    }
    return tables;
  }

  exclusively<T>(change: () => Promise<T>): Promise<T> {
    return change();
  }

  write(apply: () => void): Promise<void> {
    return this.#writes.run(() => this.#write(apply));
  }

  async close(): Promise<void> {
    await this.#writes.settled();
    await this.mirror.environment.close();
  }

  async #write(apply: () => void): Promise<void> {
    if (this.#isLost) throw movedOn();
    const { database, store, lease } = this.#options;
    const changes = this.mirror.rehearse(apply);
    let hasBegun = false;
    try {
      await database.transaction(async (transaction) => {
        hasBegun = true;
        const [held] = await transaction.query(isHolder, [lease.name, lease.holder]);
        if (held === undefined) throw movedOn();
        const kept = changes.filter(({ value }) => value !== undefined);
        if (kept.length > 0) putChanges(transaction, store, 0, kept);
        const removed = changes.filter(({ value }) => value === undefined);
        if (removed.length > 0) removeRows(transaction, store, removed);
        await transaction.commit();
      });
    } catch (error) {
      // Without a connection nothing has happened.
      if (hasBegun) this.#lose();
      throw error;
    }
    this.mirror.put(changes);
  }

  #lose(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#options.onLost();
  }
}

function movedOn(): Error {
  return unavailable('The jobs of this server are being taken over by a node of its own or another.');
}
