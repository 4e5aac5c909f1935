import { Mutex } from '../core/async.ts';
import { diskFull } from '../core/errors.ts';
import { refusalOf } from '../storage/tables/store-error.ts';
import type { TableStore } from '../storage/tables/table-store.ts';

/** Serializes changes of declarations: each starts from the result of the one before. */
export class Changes {
  readonly #stored: TableStore;
  readonly #mutex = new Mutex();

  constructor(stored: TableStore) {
    this.#stored = stored;
  }

  /** `change` may call `write` once. */
  run<T>(change: () => Promise<T>): Promise<T> {
    return this.#mutex.run(() => this.#stored.exclusively(change));
  }

  /** Runs one transaction, durable when settled. @throws ApiError unavailable. */
  async write(apply: () => void): Promise<void> {
    if (!this.#stored.hasDiskToGrow()) throw diskFull();
    try {
      await this.#stored.write(apply);
    } catch (error) {
      throw refusalOf(error, 'The registry');
    }
  }

  /** Settles once all changes started so far have settled. */
  settled(): Promise<void> {
    return this.#mutex.settled();
  }
}
