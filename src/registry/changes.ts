import { diskFull } from '../core/errors.ts';
import type { Environment } from '../store/environment.ts';
import { refusalOf } from '../store/store-error.ts';

/** Changes of what operators declare, one after another: each starts from what the one before it left. */
export class Changes {
  readonly #environment: Environment;
  #last: Promise<unknown> = Promise.resolve();

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  run<T>(change: () => Promise<T>): Promise<T> {
    const result = this.#last.then(change, change);
    this.#last = result;
    return result;
  }

  /** One transaction, on disk when it settles. @throws ApiError unavailable. */
  async write(apply: () => void): Promise<void> {
    if (!this.#environment.hasDiskToGrow()) throw diskFull();
    try {
      await this.#environment.write(apply);
    } catch (error) {
      throw refusalOf(error, 'The registry');
    }
  }

  /** When all that were begun have ended, well or not. */
  async settled(): Promise<void> {
    await this.#last.catch(() => {});
  }
}
