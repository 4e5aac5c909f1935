import { Batcher } from '../../core/async.ts';
import { diskFull } from '../../core/errors.ts';
import { refusalOf } from './store-error.ts';
import type { Rows, TableStore } from './table-store.ts';

/** Bounds one transaction; the rest waits for the next. */
const batchMax = 256;

/**
 * The single writer of the main thread's tables. Writes during a commit share the next one, since each commit costs a
 * disk sync whatever its size. An exception fails the whole batch.
 */
export class Journal<Name extends string = never> {
  readonly tables: Readonly<Record<Name, Rows>>;
  readonly #stored: TableStore;
  readonly #subject: string;
  readonly #commits = new Batcher<() => void, void>({
    run: (batch) => this.#write(batch),
    begin: (go) => go(),
    underWayMax: 1,
    itemsMax: batchMax,
  });
  /** Of the transaction that is being applied. */
  #afterCommit: ((isStored: boolean) => void)[] = [];

  /** `tables`: those that are used as rows. `subject` begins refusals: `The store of actions`, say. */
  constructor(stored: TableStore, tables: readonly Name[], subject: string) {
    this.#stored = stored;
    this.#subject = subject;
    this.tables = Object.fromEntries(tables.map((name) => [name, stored.rows(name)])) as Record<Name, Rows>;
  }

  /** For a `Collection`. */
  rows(table: string): Rows {
    return this.#stored.rows(table);
  }

  /** Call before reading outside `commit`. */
  refresh(): void {
    this.#stored.refresh();
  }

  /** Settles when the writes of `apply` are durable. @throws ApiError unavailable: then nothing is stored. */
  commit(apply: () => void): Promise<void> {
    return this.#commits.add(apply);
  }

  /**
   * Has `act` called once the transaction that is being applied is durable, or has failed: for what is counted in memory.
   * Call inside `commit`; whatever waits for that sees what `act` has done.
   */
  afterCommit(act: (isStored: boolean) => void): void {
    this.#afterCommit.push(act);
  }

  /** Settles when all writes requested so far are durable or refused. */
  async settled(): Promise<void> {
    // Queue behind them: an idle moment may never come while runs end all the time.
    if (!this.#commits.isIdle) await this.commit(() => {}).catch(() => {});
  }

  /** True if records may be added: enough free disk, and the map is not full. */
  mayGrow(): boolean {
    return this.#stored.hasDiskToGrow() && this.#stored.hasMapSpace();
  }

  async close(): Promise<void> {
    await this.#commits.drained();
    await this.#stored.close();
  }

  async #write(batch: readonly (() => void)[]): Promise<[]> {
    if (!this.#stored.hasDisk()) throw diskFull();
    let isStored = false;
    try {
      await this.#stored.write(() => {
        this.#afterCommit = [];
        for (const apply of batch) apply();
      });
      isStored = true;
      return [];
    } catch (error) {
      throw refusalOf(error, this.#subject);
    } finally {
      const acts = this.#afterCommit;
      this.#afterCommit = [];
      for (const act of acts) act(isStored);
    }
  }
}
