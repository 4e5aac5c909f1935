import { Mutex } from '../core/async.ts';
import type { Log } from '../core/telemetry/log.ts';
import { retryConflicts } from '../storage/postgres/connection/conflict-retry.ts';
import type { Database, Transaction } from '../storage/postgres/connection/database.ts';
import { clockMs } from '../storage/postgres/connection/database-time.ts';
import type { StoredChange, TableStore } from '../storage/tables/table-store.ts';
import { changeOf, MemoryStore, putChanges } from './memory-store.ts';
import { TableQueue } from './table-queue.ts';

export interface ReplicatedStoreOptions {
  /** Name of the store in the table `stored`. */
  store: string;
  tables: readonly string[];
  database: Database;
  log: Log;
}

/**
 * Removed rows are retained for nodes that could not poll for a while; a node that could not for longer reloads
 * everything.
 */
const removedRetentionMilliseconds = 3_600_000;
const unpolledMillisecondsMax = removedRetentionMilliseconds / 2;

type VersionNow = { version: number; now_ms: number };

const channel = 'fleetpost_stored';
const insertVersion = 'INSERT INTO store_version VALUES ($1, 0) ON CONFLICT DO NOTHING';
const versionNow = `SELECT version, ${clockMs} AS now_ms FROM store_version WHERE store = $1`;
const lockVersion = `${versionNow} FOR UPDATE`;
const changedSince =
  'SELECT name, key, value, version FROM stored WHERE store = $1 AND version > $2 ORDER BY version';
const nextVersion = 'UPDATE store_version SET version = $2 WHERE store = $1';
const notify = 'SELECT pg_notify($1, $2)';
const pruneRemoved = `
  DELETE FROM stored WHERE store = $1 AND value IS NULL AND at_ms < ${clockMs} - ${removedRetentionMilliseconds}`;

/**
 * Tables that every node has a copy of and may change: the writer locks the row of their version until its commit, and
 * first applies what others have changed. Other nodes are notified, and poll once a second anyway.
 */
export class ReplicatedStore extends MemoryStore implements TableStore {
  readonly #options: ReplicatedStoreOptions;
  readonly #queue: TableQueue;
  #seenVersion = 0;
  /**
   * Time of the last poll by the clock of the database, as the times of removed rows are: a clock here may stand
   * still, or be set.
   */
  #polledMs = 0;
  readonly #changes = new Mutex();
  #transaction: Transaction | undefined;
  #onChange: (changes: readonly StoredChange[]) => Promise<void> = async () => {};
  /**
   * Settles when all threads of this node have applied the changes: must not be awaited while the version is locked.
   */
  #published: Promise<unknown> = Promise.resolve();

  private constructor(options: ReplicatedStoreOptions) {
    super(options.tables);
    const { database, log } = options;
    this.#options = options;
    this.#queue = new TableQueue({ database, channel, log, poll: () => this.#poll() });
  }

  /** Loads everything. @throws ApiError unavailable */
  static async open(options: ReplicatedStoreOptions): Promise<ReplicatedStore> {
    const tables = new ReplicatedStore(options);
    try {
      await options.database.query(insertVersion, [options.store]);
      await tables.#load();
    } catch (error) {
      await tables.close();
      throw error;
    }
    return tables;
  }

  /**
   * Sets the handler for changes of other nodes, called at once; its promise settles when all threads of this node
   * know.
   */
  onChange(onChange: (changes: readonly StoredChange[]) => Promise<void>): void {
    this.#onChange = onChange;
  }

  override async catchUp(): Promise<void> {
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
    const changes = this.draft(apply);
    // Other nodes would never see a version without a change.
    if (changes.length === 0) return;
    const version = this.#seenVersion + 1;
    putChanges(transaction, store, version, changes);
    transaction.query(nextVersion, [store, version]);
    transaction.query(notify, [channel, store]);
    await transaction.commit();
    this.take(changes);
    this.#seenVersion = Math.max(this.#seenVersion, version);
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  async #change<T>(change: () => Promise<T>): Promise<T> {
    const { database, store } = this.#options;
    const changeOnce = async (transaction: Transaction): Promise<T> => {
      try {
        const [row] = await transaction.query<VersionNow>(lockVersion, [store]);
        await this.#follow(transaction);
        // Even if rows of it are missing: the next version must be one that nobody has seen.
        this.#seenVersion = Math.max(this.#seenVersion, row?.version ?? 0);
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

  async #poll(): Promise<void> {
    const { database, store } = this.#options;
    const [row] = await database.query<VersionNow>(versionNow, [store]);
    if (row === undefined) return;
    if (row.now_ms - this.#polledMs > unpolledMillisecondsMax) await this.#load();
    else if (row.version !== this.#seenVersion) await this.#follow(database);
    await this.#published;
    if (Math.random() < 1 / 600) await database.query(pruneRemoved, [store]);
    this.#polledMs = row.now_ms;
  }

  async #follow(session: { query: Database['query'] }): Promise<void> {
    const { store } = this.#options;
    const rows = await session.query<{ name: string; key: Buffer; value: Buffer | null; version: number }>(
      changedSince,
      [store, this.#seenVersion],
    );
    // This node may have changed some itself since the query.
    const changes = rows.filter(({ version }) => version > this.#seenVersion).map(changeOf);
    this.#seenVersion = Math.max(this.#seenVersion, rows.at(-1)?.version ?? 0);
    if (changes.length === 0) return;
    this.take(changes);
    this.#publish(changes);
  }

  #publish(changes: readonly StoredChange[]): void {
    const publishing = this.#onChange(changes).catch((error: unknown) => {
      this.#options.log.error({ err: error }, 'a thread missed a declaration of another node');
    });
    this.#published = Promise.all([this.#published, publishing]);
  }

  async #load(): Promise<void> {
    const { database, store } = this.#options;
    const [row] = await database.query<VersionNow>(versionNow, [store]);
    const changes = await this.load(database, store);
    this.#seenVersion = Math.max(this.#seenVersion, row?.version ?? 0);
    this.#polledMs = Math.max(this.#polledMs, row?.now_ms ?? 0);
    this.#publish(changes);
    await this.#published;
  }
}
