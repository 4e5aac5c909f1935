import { Mutex } from '../core/async.ts';
import type { Log } from '../core/telemetry/log.ts';
import type { StoredChange, StoredTables } from '../storage/lmdb/environment/stored-tables.ts';
import { retryConflicts } from '../storage/postgres/connection/conflict-retry.ts';
import type { Database, Transaction } from '../storage/postgres/connection/database.ts';
import { clockMs } from '../storage/postgres/connection/database-time.ts';
import { Mirror, MirroredTables, type MirrorOptions, putChanges } from './mirror.ts';
import { TableQueue } from './table-queue.ts';

export interface ReplicatedStoreOptions extends MirrorOptions {
  database: Database;
  log: Log;
}

/** Removed rows are kept for nodes that could not look for a while; one that could not for longer loads all anew. */
const removedKeptMilliseconds = 3_600_000;
const blindMillisecondsMax = removedKeptMilliseconds / 2;

const channel = 'fleetpost_stored';
const enter = 'INSERT INTO store_version VALUES ($1, 0) ON CONFLICT DO NOTHING';
const versionNow = 'SELECT version FROM store_version WHERE store = $1';
const lockVersion = `${versionNow} FOR UPDATE`;
const changedSince =
  'SELECT name, key, value, version FROM stored WHERE store = $1 AND version > $2 ORDER BY version';
const nextVersion = 'UPDATE store_version SET version = $2 WHERE store = $1';
const tell = 'SELECT pg_notify($1, $2)';
const forgetRemoved = `
  DELETE FROM stored WHERE store = $1 AND value IS NULL AND at_ms < ${clockMs} - ${removedKeptMilliseconds}`;

/**
 * Tables that every node has a mirror of, and may change: whoever does holds the row of their version until his
 * commit, and begins by what others have changed. The others are told of it, and look once a second anyway.
 */
export class ReplicatedStore extends MirroredTables implements StoredTables {
  readonly #options: ReplicatedStoreOptions;
  readonly #inbox: TableQueue;
  #seen = 0;
  #looked = performance.now();
  readonly #changes = new Mutex();
  #transaction: Transaction | undefined;
  #onChange: (changes: readonly StoredChange[]) => Promise<void> = async () => {};
  /** Settles when this node's threads know what was followed: not to be waited for with the version locked. */
  #published: Promise<unknown> = Promise.resolve();

  private constructor(options: ReplicatedStoreOptions) {
    super(new Mirror(options));
    const { database, log } = options;
    this.#options = options;
    this.#inbox = new TableQueue({ database, channel, log, look: () => this.#look() });
  }

  /** With all that there is. @throws ApiError unavailable */
  static async open(options: ReplicatedStoreOptions): Promise<ReplicatedStore> {
    const tables = new ReplicatedStore(options);
    try {
      await options.database.query(enter, [options.store]);
      await tables.#load();
    } catch (error) {
      await tables.close();
      throw error;
    }
    return tables;
  }

  /** Who is told of what other nodes have changed: at once, and settles when all threads of this node know. */
  onChange(onChange: (changes: readonly StoredChange[]) => Promise<void>): void {
    this.#onChange = onChange;
  }

  /** Settles when everything is seen that was committed before. @throws ApiError unavailable */
  async catchUp(): Promise<void> {
    await this.#follow(this.#options.database);
    await this.#published;
  }

  exclusively<T>(change: () => Promise<T>): Promise<T> {
    return this.#changes.run(() => this.#change(change));
  }

  async write(apply: () => void): Promise<void> {
    const { store } = this.#options;
    const transaction = this.#transaction;
    if (transaction === undefined) throw new Error('a change writes once, and alone');
    this.#transaction = undefined;
    const changes = this.mirror.rehearse(apply);
    // A version without a change is one that no other node would get to know.
    if (changes.length === 0) return;
    const version = this.#seen + 1;
    putChanges(transaction, store, version, changes);
    transaction.query(nextVersion, [store, version]);
    transaction.query(tell, [channel, store]);
    await transaction.commit();
    this.mirror.put(changes);
    this.#seen = Math.max(this.#seen, version);
  }

  async close(): Promise<void> {
    await this.#inbox.close();
    await this.mirror.environment.close();
  }

  async #change<T>(change: () => Promise<T>): Promise<T> {
    const { database, store } = this.#options;
    const changeOnce = async (transaction: Transaction): Promise<T> => {
      try {
        const [row] = await transaction.query<{ version: number }>(lockVersion, [store]);
        await this.#follow(transaction);
        // Whatever there is of it: the next version must be one that nobody has seen.
        this.#seen = Math.max(this.#seen, row?.version ?? 0);
        this.#transaction = transaction;
        const answer = await change();
        if (!transaction.isEnded) await transaction.rollback();
        return answer;
      } finally {
        this.#transaction = undefined;
      }
    };
    const answer = await retryConflicts(() => database.transaction(changeOnce));
    await this.#published;
    return answer;
  }

  async #look(): Promise<void> {
    const { database, store } = this.#options;
    if (performance.now() - this.#looked > blindMillisecondsMax) await this.#load();
    const [row] = await database.query<{ version: number }>(versionNow, [store]);
    if (row !== undefined && row.version !== this.#seen) await this.#follow(database);
    await this.#published;
    if (Math.random() < 1 / 600) await database.query(forgetRemoved, [store]);
    this.#looked = performance.now();
  }

  async #follow(session: { query: Database['query'] }): Promise<void> {
    const { store } = this.#options;
    const rows = await session.query<{ name: string; key: Buffer; value: Buffer | null; version: number }>(
      changedSince,
      [store, this.#seen],
    );
    // This node may have changed some itself since it asked.
    const changes = rows
      .filter(({ version }) => version > this.#seen)
      .map(({ name, key, value }) => ({ name, key, value: value ?? undefined }));
    this.#seen = Math.max(this.#seen, rows.at(-1)?.version ?? 0);
    if (changes.length === 0) return;
    this.mirror.put(changes);
    this.#publish(changes);
  }

  #publish(changes: readonly StoredChange[]): void {
    const publishing = this.#onChange(changes).catch((error: unknown) => {
      this.#options.log.error({ err: error }, 'a thread was not told of what another node declared');
    });
    this.#published = Promise.all([this.#published, publishing]);
  }

  async #load(): Promise<void> {
    const { database, store } = this.#options;
    const [row] = await database.query<{ version: number }>(versionNow, [store]);
    const changes = await this.mirror.load(database, store);
    this.#seen = Math.max(this.#seen, row?.version ?? 0);
    this.#publish(changes);
    await this.#published;
  }
}
