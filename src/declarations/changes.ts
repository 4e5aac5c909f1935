import { Mutex } from '../core/async.ts';
import { diskFull } from '../core/errors.ts';
import { refusalOf } from '../storage/lmdb/environment/store-error.ts';
import type { StoredTables } from '../storage/lmdb/environment/stored-tables.ts';

/** Changes of what operators declare, one after another: each starts from what the one before it left. */
export class Changes {
  readonly #stored: StoredTables;
  readonly #inTurn = new Mutex();

  constructor(stored: StoredTables) {
    this.#stored = stored;
  }

  /** `change` may write once. */
  run<T>(change: () => Promise<T>): Promise<T> {
    return this.#inTurn.run(() => this.#stored.exclusively(change));
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
  settled(): Promise<void> {
    return this.#inTurn.settled();
  }
}
