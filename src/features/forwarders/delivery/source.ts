import { Condition } from '../../../core/async.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import type { ForwarderDeadLetters } from '../forwarder-dead-letters.ts';

/** The replayed dead letters of one forwarder. */
export class ReplaySource implements Source {
  readonly #letters: ForwarderDeadLetters;
  readonly #forwarder: Buffer;
  readonly #wakes = new Condition();

  constructor(letters: ForwarderDeadLetters, forwarder: Buffer) {
    this.#letters = letters;
    this.#forwarder = forwarder;
  }

  /** Checks for new replays. */
  wake(): void {
    this.#wakes.wakeOne();
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
      await this.#wakes.wait(signal);
    }
    return undefined;
  }
}

/** Records in order, released or acknowledged as a whole. */
export interface SourceBatch {
  /** Never empty. */
  records: readonly StoredRecord[];
  /** Settles once durable; the records never come again. @throws ApiError unavailable: then they do. */
  acknowledge(): Promise<void>;
  /** Makes them the next ones again. */
  release(): void;
}

/** Yields the records of one delivery loop, one batch after another. */
export interface Source {
  /** Waits for up to `recordsMax` records; undefined if aborted first. */
  fetch(recordsMax: number, signal: AbortSignal): Promise<SourceBatch | undefined>;
}
