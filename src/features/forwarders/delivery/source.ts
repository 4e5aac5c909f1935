import { Condition } from '../../../core/async.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import type { ForwarderDeadLetters } from '../dead-letters.ts';

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

/** Records in order, to be given back or acknowledged as a whole. */
export interface SourceBatch {
  /** At least one. */
  records: readonly StoredRecord[];
  /** They never come again. Durable when it settles. @throws ApiError unavailable: then they do. */
  acknowledge(): Promise<void>;
  /** They are the next ones again. */
  release(): void;
}

/** Where the records of one lane come from, one batch after another. */
export interface Source {
  /** Waits for records, that many at most; undefined when the signal came first. */
  fetch(recordsMax: number, signal: AbortSignal): Promise<SourceBatch | undefined>;
}
