import { statfsSync } from 'node:fs';
import { open, type RootDatabase } from 'lmdb';
import type { Log } from '../../../core/telemetry/log.ts';
import type { Rows, TableStore } from '../../tables/table-store.ts';
import { causeOf } from './lmdb-error.ts';
import { LmdbRows, type Table } from './stored-tables.ts';

export interface EnvironmentOptions {
  path: string;
  tables: readonly string[];
  mapBytesMax: number;
  /** Free disk space below which nothing is added; below a quarter of it nothing is written. Absent: not checked. */
  diskFreeBytesMin?: number;
  /** Maximum reading threads. */
  readersMax: number;
  /**
   * A shared counter of commits. A snapshot lives for an event-loop turn, so a thread that read just before another
   * thread's commit would miss it: readers renew their snapshot when the counter has changed.
   */
  commits: Int32Array<SharedArrayBuffer>;
  /**
   * For an environment that is worthless until complete: commits are not synced, and the caller syncs the files at
   * the end. A power cut before that may leave it unreadable.
   */
  unsynced?: boolean;
  /** Log for failures to find out the free disk space. */
  log?: Log | undefined;
}

const pageBytes = 4096;
const mapCheckIntervalMs = 1_000;
/** Mail stays for days, and who may send it could fill the disk: the log trims itself. */
const diskFreeForMailFactor = 4;
const diskCheckIntervalMs = 100;

/** LMDB's view of an environment, missing in lmdb's typings. */
interface NativeEnvironment {
  info(): { lastPageNumber: number };
}

/** LMDB's statistics of a table, missing in lmdb's typings. */
interface NativeStatistics {
  entryCount: number;
  treeBranchPageCount: number;
  treeLeafPageCount: number;
  overflowPages: number;
}

/** lmdb's typings have put options for the synchronous version only. */
interface AppendTable {
  put(key: Buffer, value: Buffer, options: { append: true }): Promise<boolean>;
}

/**
 * One thread's handle of an LMDB environment. Every thread may open the same path and read; exactly one, its owner,
 * may call `write`.
 */
export class Environment implements TableStore {
  readonly #root: RootDatabase<Buffer, Buffer>;
  readonly #native: NativeEnvironment;
  readonly #tables: ReadonlyMap<string, Table>;
  readonly #commits: Int32Array<SharedArrayBuffer>;
  readonly #pagesMax: number;
  #seenCommits = -1;
  #pagesChecked = 0;
  #mapCheckedAtMs = Number.NEGATIVE_INFINITY;
  #hasMapSpace = true;
  readonly #path: string;
  readonly #diskFreeBytesMin: number;
  #diskFreeBytes = Number.POSITIVE_INFINITY;
  #diskCheckedAtMs = Number.NEGATIVE_INFINITY;
  #isDiskKnown = true;
  readonly #log: Log | undefined;

  constructor(options: EnvironmentOptions) {
    this.#log = options.log;
    this.#path = options.path;
    this.#diskFreeBytesMin = options.diskFreeBytesMin ?? 0;
    this.#commits = options.commits;
    this.#pagesMax = Math.floor(options.mapBytesMax / pageBytes);
    this.#root = open<Buffer, Buffer>({
      path: options.path,
      noSubdir: false,
      mapSize: options.mapBytesMax,
      maxDbs: 32,
      maxReaders: options.readersMax,
      // Classic LMDB: a commit is durable before it is visible, so that nothing read can be lost by a power cut, and
      // one promise covers both.
      overlappingSync: false,
      noSync: options.unsynced === true,
      // Each write is its own transaction; waiting for the end of the turn gains nothing.
      eventTurnBatching: false,
      keyEncoding: 'binary',
      encoding: 'binary',
    });
    this.#native = (this.#root as unknown as { env: NativeEnvironment }).env;
    this.#tables = new Map(
      options.tables.map((name) => [
        name,
        this.#guard(this.#root.openDB<Buffer, Buffer>({ name, keyEncoding: 'binary', encoding: 'binary' })),
      ]),
    );
  }

  table(name: string): Table {
    const table = this.#tables.get(name);
    if (table === undefined) throw new Error(`no table ${name}`);
    return table;
  }

  rows(table: string): Rows {
    return new LmdbRows(this.table(table));
  }

  /** Commits answered by any thread; wraps. A read is current as long as the value taken before it is unchanged. */
  get commits(): number {
    return Atomics.load(this.#commits, 0);
  }

  /** Call before reading outside `write`, to see every answered commit of any thread. */
  refresh(): void {
    const { commits } = this;
    if (commits === this.#seenCommits) return;
    this.#seenCommits = commits;
    this.#root.resetReadTxn();
  }

  /** Nothing: one process alone writes. */
  async catchUp(): Promise<void> {}

  /**
   * Runs `apply` in one transaction; settles when it is durable (D19). LMDB's write thread commits, while this thread
   * goes on reading.
   * @throws what `apply` threw, or a StoreError if LMDB refused: then nothing is stored. A plain `transaction` would
   * commit what preceded the throw; a child transaction does not, at no measurable cost.
   */
  async write(apply: () => void): Promise<void> {
    try {
      await this.#root.childTransaction(apply);
    } catch (error) {
      throw await causeOf(error);
    }
    Atomics.add(this.#commits, 0, 1);
  }

  /** The owner is the only writer. */
  exclusively<T>(change: () => Promise<T>): Promise<T> {
    return change();
  }

  /**
   * Like `write`, but blocking this thread: for large transactions outside the service. The next read sees it, and no
   * old snapshot of this thread keeps freed pages from being reused.
   */
  writeSync(apply: () => void): void {
    this.#root.transactionSync(apply);
    this.#root.resetReadTxn();
    Atomics.add(this.#commits, 0, 1);
  }

  /** Record count and page bytes of a table. LMDB maintains them, so it costs nothing. */
  sizeOf(table: string): { records: number; bytes: number } {
    const counts = this.table(table).getStats() as NativeStatistics;
    const pages = counts.treeBranchPageCount + counts.treeLeafPageCount + counts.overflowPages;
    return { records: counts.entryCount, bytes: pages * pageBytes };
  }

  /**
   * Appends one record to its table; settles when it is durable. LMDB's thread does it alone, while `write` needs two
   * turns of both threads.
   * @throws StoreError if LMDB refused: then it is not stored.
   */
  async append(table: string, key: Buffer, value: Buffer): Promise<void> {
    let isLast: boolean;
    try {
      isLast = await (this.table(table) as unknown as AppendTable).put(key, value, { append: true });
    } catch (error) {
      throw await causeOf(error);
    }
    if (!isLast) throw new Error('the record is not behind all others');
    Atomics.add(this.#commits, 0, 1);
  }

  /**
   * True if records may be added. lmdb-js grows a full map by itself, so `mapBytesMax` is enforced here. LMDB cannot
   * count freed pages in reasonable time: beyond the limit one batch a second is let through, and while those fit
   * into freed pages there is space.
   */
  hasMapSpace(): boolean {
    const now = performance.now();
    if (now - this.#mapCheckedAtMs < mapCheckIntervalMs) return this.#hasMapSpace;
    this.#mapCheckedAtMs = now;
    const pages = this.#native.info().lastPageNumber;
    this.#hasMapSpace = pages < this.#pagesMax || pages === this.#pagesChecked;
    this.#pagesChecked = pages;
    return this.#hasMapSpace;
  }

  /** True if there is enough free disk space for mail and devices too, which leave room for what devices send. */
  hasDiskForMail(): boolean {
    return this.#diskFree() >= diskFreeForMailFactor * this.#diskFreeBytesMin;
  }

  /** True if there is enough free disk space to add records. */
  hasDiskToGrow(): boolean {
    return this.#diskFree() >= this.#diskFreeBytesMin;
  }

  /**
   * True if there is enough free disk space for any write. LMDB rolls a failed write back, but lmdb-js then writes a
   * message of over 100 bytes into a buffer of 100: so the disk must never fill up.
   */
  hasDisk(): boolean {
    return this.#diskFree() >= this.#diskFreeBytesMin / 4;
  }

  /** Free bytes of its disk, as last known; undefined where `diskFreeBytesMin` is 0, so that nothing watches it. */
  diskFreeBytes(): number | undefined {
    const bytes = this.#diskFree();
    return Number.isFinite(bytes) ? bytes : undefined;
  }

  #diskFree(): number {
    const now = performance.now();
    if (now - this.#diskCheckedAtMs > diskCheckIntervalMs && this.#diskFreeBytesMin > 0) {
      this.#diskCheckedAtMs = now;
      this.#checkDisk();
    }
    return this.#diskFreeBytes;
  }

  /**
   * The folder may be out of reach by its path while its open files go on working: then what was last known holds, so
   * that writes go on.
   */
  #checkDisk(): void {
    try {
      const { bavail, bsize } = statfsSync(this.#path);
      this.#diskFreeBytes = bavail * bsize;
      this.#isDiskKnown = true;
    } catch (error) {
      if (this.#isDiskKnown)
        this.#log?.warn({ err: error }, 'free disk space unknown; writes go on as before');
      this.#isDiskKnown = false;
    }
  }

  /**
   * After a read of a damaged page LMDB refuses the whole snapshot, and with it all other devices' reads of the turn:
   * so the snapshot is dropped with the error.
   */
  #guard(table: Table): Table {
    const { getBinary, getBinaryFast } = table;
    const guarded = (read: typeof getBinary) => (key: Buffer) => {
      try {
        return read.call(table, key);
      } catch (error) {
        this.#root.resetReadTxn();
        throw error;
      }
    };
    return Object.assign(table, { getBinary: guarded(getBinary), getBinaryFast: guarded(getBinaryFast) });
  }

  async close(): Promise<void> {
    await this.#root.close();
  }
}
