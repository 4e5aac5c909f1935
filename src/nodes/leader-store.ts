import { Mutex } from '../core/async.ts';
import { unavailable } from '../core/errors.ts';
import type { Database } from '../storage/postgres/connection/database.ts';
import type { TableStore } from '../storage/tables/table-store.ts';
import { MemoryStore, putChanges, removeRows } from './memory-store.ts';

export interface LeaderStoreOptions {
  /** Name of the store in the table `stored`. */
  store: string;
  tables: readonly string[];
  database: Database;
  /** The lease that must be held for each commit. */
  lease: { name: string; holder: string };
  /**
   * Called when another node has the lease, or the outcome of a commit is unknown: what is in memory may be out of date.
   */
  onLost(): void;
}

/** The lock lasts until the commit: whoever takes the lease meanwhile waits, and then reads what was written before. */
const isHolder = 'SELECT name FROM lease WHERE name = $1 AND holder = $2 FOR SHARE';

/**
 * Tables that only the leader reads and changes; each commit checks that it still has the lease. If the outcome of a
 * commit is unknown it gives up everything, as if the process had died: the next leader, even itself, starts from what
 * is stored.
 */
export class LeaderStore extends MemoryStore implements TableStore {
  readonly #options: LeaderStoreOptions;
  #isLost = false;
  readonly #writes = new Mutex();

  private constructor(options: LeaderStoreOptions) {
    super(options.tables);
    this.#options = options;
  }

  /** Loads everything; the lease is held already. @throws ApiError unavailable */
  static async open(options: LeaderStoreOptions): Promise<LeaderStore> {
    const tables = new LeaderStore(options);
    await tables.load(options.database, options.store);
    return tables;
  }

  exclusively<T>(change: () => Promise<T>): Promise<T> {
    return change();
  }

  write(apply: () => void): Promise<void> {
    return this.#writes.run(() => this.#write(apply));
  }

  close(): Promise<void> {
    return this.#writes.settled();
  }

  async #write(apply: () => void): Promise<void> {
    if (this.#isLost) throw leadershipLost();
    const { database, store, lease } = this.#options;
    const changes = this.draft(apply);
    let hasBegun = false;
    try {
      await database.transaction(async (transaction) => {
        hasBegun = true;
        const [row] = await transaction.query(isHolder, [lease.name, lease.holder]);
        if (row === undefined) throw leadershipLost();
        const puts = changes.filter(({ value }) => value !== undefined);
        if (puts.length > 0) putChanges(transaction, store, 0, puts);
        const removed = changes.filter(({ value }) => value === undefined);
        if (removed.length > 0) removeRows(transaction, store, removed);
        await transaction.commit();
      });
    } catch (error) {
      // Without a connection nothing was sent.
      if (hasBegun) this.#lose();
      throw error;
    }
    this.take(changes);
  }

  #lose(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#options.onLost();
  }
}

function leadershipLost(): Error {
  return unavailable('This node is no longer the leader. Retry later.');
}
