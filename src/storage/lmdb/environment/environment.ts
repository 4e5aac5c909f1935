import { statfsSync } from 'node:fs';
import { ABORT, open, type RootDatabase } from 'lmdb';
import { causeOf } from './store-error.ts';
import type { StoredTables, Table } from './stored-tables.ts';

export interface EnvironmentOptions {
  path: string;
  tables: readonly string[];
  mapBytesMax: number;
  /** Below this much free disk nothing is added, below a quarter of it nothing is written. None: not looked at. */
  diskFreeBytesMin?: number;
  /** Threads that will read this environment at once. */
  readersMax: number;
  /**
   * A shared counter of commits. A snapshot lives as long as its event-loop turn, so a thread that read
   * just before another thread's commit would not see it: a reader that finds the counter moved renews.
   */
  commits: Int32Array<SharedArrayBuffer>;
  /**
   * For an environment that counts for nothing until it is whole: commits do not wait for the disk, and
   * whoever filled it syncs its files at the end. A power cut before that may leave it unreadable.
   */
  unsynced?: boolean;
}

const pageBytes = 4096;
const roomCheckIntervalMs = 1_000;
const diskCheckIntervalMs = 100;

/** LMDB's own view of an environment; lmdb's typings leave it out. */
interface NativeEnvironment {
  info(): { lastPageNumber: number };
}

/** What LMDB counts of a table; lmdb's typings leave it out. */
interface NativeStatistics {
  entryCount: number;
  treeBranchPageCount: number;
  treeLeafPageCount: number;
  overflowPages: number;
}

/** lmdb's typings know options of a put for the synchronous one alone. */
interface AppendTable {
  put(key: Buffer, value: Buffer, options: { append: true }): Promise<boolean>;
}

/**
 * One LMDB environment as one thread sees it. Every thread of the process may open the same path and read;
 * exactly one, its owner, may call `write`.
 */
export class Environment implements StoredTables {
  readonly #root: RootDatabase<Buffer, Buffer>;
  readonly #native: NativeEnvironment;
  readonly #tables: ReadonlyMap<string, Table>;
  readonly #commits: Int32Array<SharedArrayBuffer>;
  readonly #pagesMax: number;
  #seenCommits = -1;
  #pagesChecked = 0;
  #roomCheckedAtMs = Number.NEGATIVE_INFINITY;
  #hasRoom = true;
  readonly #path: string;
  readonly #diskFreeBytesMin: number;
  #diskFreeBytes = Number.POSITIVE_INFINITY;
  #diskCheckedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: EnvironmentOptions) {
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
      // Classic LMDB: a commit is on disk before anyone can see it, so nothing is ever read that a power
      // cut could take back, and one promise says both.
      overlappingSync: false,
      noSync: options.unsynced === true,
      // Each write is a transaction of its own; nothing is gained by waiting for the turn to end.
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

  /** How many commits were answered anywhere; wraps. What was read after this was is current while it is the same. */
  get commits(): number {
    return Atomics.load(this.#commits, 0);
  }

  /** Call before reading outside `write`: afterwards every commit that was answered anywhere is visible. */
  refresh(): void {
    const { commits } = this;
    if (commits === this.#seenCommits) return;
    this.#seenCommits = commits;
    this.#root.resetReadTxn();
  }

  /**
   * Runs `apply` in one transaction; the promise settles when it is on disk (D19). The commit itself
   * happens on LMDB's write thread, so this thread goes on reading meanwhile.
   * @throws what `apply` threw, or a StoreError when LMDB refused: then nothing of it is stored. A plain
   * `transaction` would commit what came before the throw; a child transaction does not, at no measurable cost.
   */
  async write(apply: () => void): Promise<void> {
    try {
      await this.#root.childTransaction(apply);
    } catch (error) {
      throw await causeOf(error);
    }
    Atomics.add(this.#commits, 0, 1);
  }

  /** Its owner is the only one who writes. */
  exclusively<T>(change: () => Promise<T>): Promise<T> {
    return change();
  }

  /** Runs `apply` in a transaction that is taken back: it sees what it wrote, and nobody else ever does. */
  rehearse(apply: () => void): void {
    this.#root.transactionSync(() => {
      apply();
      return ABORT;
    });
    this.#root.resetReadTxn();
  }

  /**
   * As `write`, on this thread, which waits for it: for large transactions outside the service. The next read
   * sees it, and no snapshot of this thread's keeps its freed pages from being used again.
   */
  writeSync(apply: () => void): void {
    this.#root.transactionSync(apply);
    this.#root.resetReadTxn();
    Atomics.add(this.#commits, 0, 1);
  }

  /** How many records a table holds, and how many bytes of pages. Counted by LMDB, so at no cost. */
  sizeOf(table: string): { records: number; bytes: number } {
    const counts = this.table(table).getStats() as NativeStatistics;
    const pages = counts.treeBranchPageCount + counts.treeLeafPageCount + counts.overflowPages;
    return { records: counts.entryCount, bytes: pages * pageBytes };
  }

  /**
   * Puts one record behind all others of its table; the promise settles when it is on disk. LMDB's own thread
   * does it alone, where `write` needs two turns of both threads.
   * @throws StoreError when LMDB refused: then it is not stored.
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
   * Whether records may be added. lmdb-js grows a full map by itself, so `mapBytesMax` is kept here. Pages
   * that deletions free are not counted by LMDB in reasonable time: past the limit, one batch a second is
   * let through, and as long as those fit into freed pages the environment has room.
   */
  hasRoom(): boolean {
    const now = performance.now();
    if (now - this.#roomCheckedAtMs < roomCheckIntervalMs) return this.#hasRoom;
    this.#roomCheckedAtMs = now;
    const pages = this.#native.info().lastPageNumber;
    this.#hasRoom = pages < this.#pagesMax || pages === this.#pagesChecked;
    this.#pagesChecked = pages;
    return this.#hasRoom;
  }

  /** Whether the disk has the room that records are added to. */
  hasDiskToGrow(): boolean {
    return this.#diskFree() >= this.#diskFreeBytesMin;
  }

  /**
   * Whether the disk has room for any write. LMDB takes a write that fails back, but lmdb-js then puts a message
   * of 100 bytes and more into a buffer of 100: so a disk must not fill up under it.
   */
  hasDisk(): boolean {
    return this.#diskFree() >= this.#diskFreeBytesMin / 4;
  }

  #diskFree(): number {
    const now = performance.now();
    if (now - this.#diskCheckedAtMs > diskCheckIntervalMs && this.#diskFreeBytesMin > 0) {
      this.#diskCheckedAtMs = now;
      const { bavail, bsize } = statfsSync(this.#path);
      this.#diskFreeBytes = bavail * bsize;
    }
    return this.#diskFreeBytes;
  }

  /**
   * A read that meets a damaged page makes LMDB refuse the whole snapshot from then on, and with it every other
   * device of the turn: so the snapshot goes with the error.
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
