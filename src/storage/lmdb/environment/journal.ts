import { diskFull } from '../../../core/errors.ts';
import { refusalOf } from './store-error.ts';
import type { StoredTables, Table } from './stored-tables.ts';

interface Pending {
  apply(): void;
  resolve(): void;
  reject(error: Error): void;
}

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
  #pending: Pending[] = [];
  #running: Promise<void> | undefined;

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
    return new Promise((resolve, reject) => {
      this.#pending.push({ apply, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Settles when everything that was to be written until now is, or was refused. */
  async settled(): Promise<void> {
    // Behind all of that: to wait for an idle moment would be for ever where runs end all the time.
    if (this.#running !== undefined) await this.commit(() => {}).catch(() => {});
  }

  /** With less disk than is left alone, or a full map, nothing may be added, as in a shard. */
  mayGrow(): boolean {
    return this.#stored.hasDiskToGrow() && this.#stored.hasRoom();
  }

  async close(): Promise<void> {
    await this.#running;
    await this.#stored.close();
  }

  async #run(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending.splice(0, batchMax);
      try {
        await this.#write(batch);
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error as Error);
      }
    }
    this.#running = undefined;
  }

  async #write(batch: readonly Pending[]): Promise<void> {
    if (!this.#stored.hasDisk()) throw diskFull();
    try {
      await this.#stored.write(() => {
        for (const { apply } of batch) apply();
      });
    } catch (error) {
      throw refusalOf(error, this.#subject);
    }
  }
}
