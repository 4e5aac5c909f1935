import { Waiters } from '../../../core/async.ts';
import type { DeadLetters } from '../dead-letters.ts';
import type { Batch, Source } from './source.ts';

/** The dead letters of one forwarder that are to be sent once more. */
export class ReplaySource implements Source {
  readonly #letters: DeadLetters;
  readonly #forwarder: Buffer;
  readonly #waiters = new Waiters();

  constructor(letters: DeadLetters, forwarder: Buffer) {
    this.#letters = letters;
    this.#forwarder = forwarder;
  }

  /** There may be more than before. */
  look(): void {
    this.#waiters.wakeOne();
  }

  async fetch(recordsMax: number, signal: AbortSignal): Promise<Batch | undefined> {
    while (!signal.aborted) {
      const letters = this.#letters.replays(this.#forwarder, recordsMax);
      if (letters.length > 0) {
        return {
          records: letters.map(({ record }) => record),
          acknowledge: () => this.#letters.settle(this.#forwarder, letters),
          release: () => {},
        };
      }
      await this.#waiters.wait(signal);
    }
    return undefined;
  }
}
