import { diskFull } from '../core/errors.ts';
import { refusalOf } from '../storage/lmdb/environment/store-error.ts';
import type { StoredTables } from '../storage/lmdb/environment/stored-tables.ts';

/** Changes of what operators declare, one after another: each starts from what the one before it left. */
export class Changes {
  readonly #stored: StoredTables;
  #last: Promise<unknown> = Promise.resolve();

  constructor(stored: StoredTables) {
    this.#stored = stored;
  }

  /** `change` may write once. */
  run<T>(change: () => Promise<T>): Promise<T> {
    const next = (): Promise<T> => this.#stored.exclusively(change);
    const result = this.#last.then(next, next);
    this.#last = result;
    return result;
  }

  /** One transaction, on disk when it settles. @throws ApiError unavailable. */
  async write(apply: () => void): Promise<void> {
    if (!this.#stored.hasDiskToGrow()) throw diskFull();
    try {
      await this.#stored.write(apply);
    } catch (error) {
      throw refusalOf(error, 'The registry');
    }
  }

  /** When all that were begun have ended, well or not. */
  async settled(): Promise<void> {
    await this.#last.catch(() => {});
  }
}
