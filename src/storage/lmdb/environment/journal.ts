import { Batcher } from '../../../core/async.ts';
import { diskFull } from '../../../core/errors.ts';
import { refusalOf } from './store-error.ts';
import type { StoredTables, Table } from './stored-tables.ts';

/** Keeps one transaction within bounds; the rest waits for the next. */
const batchMax = 256;

/**
 * The one writer of tables of the main thread. What is to be written while a commit is under way shares
 * the next one: a commit costs a sync of the disk, whatever is in it. One that throws fails its batch.
 */
export class Journal<Name extends string> {
  readonly tables: Readonly<Record<Name, Table>>;
  readonly #stored: StoredTables;
  readonly #subject: string;
  readonly #commits = new Batcher<() => void, void>({
    run: (batch) => this.#write(batch),
    begin: (go) => go(),
    underWayMax: 1,
    itemsMax: batchMax,
  });

  /** `subject`: what a refusal says of it, `The store of actions` say. */
  constructor(stored: StoredTables, tables: readonly Name[], subject: string) {
    this.#stored = stored;
    this.#subject = subject;
    this.tables = Object.fromEntries(tables.map((name) => [name, stored.table(name)])) as Record<Name, Table>;
  }

  /** Before reading outside `commit`. */
  refresh(): void {
    this.#stored.refresh();
  }

  /** Settles when what `apply` wrote is on disk. @throws ApiError unavailable when it cannot be: then nothing is. */
  commit(apply: () => void): Promise<void> {
    return this.#commits.add(apply);
  }

  /** Settles when everything that was to be written until now is, or was refused. */
  async settled(): Promise<void> {
    // Behind all of that: to wait for an idle moment would be for ever where runs end all the time.
    if (!this.#commits.isIdle) await this.commit(() => {}).catch(() => {});
  }

  /** With less disk than is left alone, or a full map, nothing may be added, as in a shard. */
  mayGrow(): boolean {
    return this.#stored.hasDiskToGrow() && this.#stored.hasRoom();
  }

  async close(): Promise<void> {
    await this.#commits.drained();
    await this.#stored.close();
  }

  async #write(batch: readonly (() => void)[]): Promise<[]> {
    if (!this.#stored.hasDisk()) throw diskFull();
    try {
      await this.#stored.write(() => {
        for (const apply of batch) apply();
      });
      return [];
    } catch (error) {
      throw refusalOf(error, this.#subject);
    }
  }
}
