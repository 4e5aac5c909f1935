import { Condition } from '../../../core/async.ts';
import type { ForwarderDeadLetters } from '../dead-letters.ts';
import type { Source, SourceBatch } from './source.ts';

/** The dead letters of one forwarder that are to be sent once more. */
export class ReplaySource implements Source {
  readonly #letters: ForwarderDeadLetters;
  readonly #forwarder: Buffer;
  readonly #waiters = new Condition();

  constructor(letters: ForwarderDeadLetters, forwarder: Buffer) {
    this.#letters = letters;
    this.#forwarder = forwarder;
  }

  /** There may be more than before. */
  look(): void {
    this.#waiters.wakeOne();
  }

  async fetch(recordsMax: number, signal: AbortSignal): Promise<SourceBatch | undefined> {
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
