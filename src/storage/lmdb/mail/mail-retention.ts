import { readDiedAtMs } from '../layout/dead-letter-record.ts';
import { deadDeviceAt, keyOfDevice, readDevice, sequenceKey } from '../layout/keys.ts';
import { readSettledAtMs } from '../layout/receipt-record.ts';
import type { Tables } from '../layout/tables.ts';
import type { DeadLetters } from './dead-letters.ts';
import { RetentionWalk } from './retention-walk.ts';

export interface MailRetentionLimits {
  receiptRetentionSeconds: number;
  deadLetterRetentionSeconds: number;
}

/** Removes receipts and dead letters that were kept for long enough, inside the owner's write transaction. */
export class MailRetention {
  readonly #tables: Tables;
  readonly #letters: DeadLetters;
  readonly #receiptsMs: number;
  readonly #lettersMs: number;
  readonly #receiptWalk: RetentionWalk;
  readonly #letterWalk: RetentionWalk;

  constructor(tables: Tables, letters: DeadLetters, limits: MailRetentionLimits) {
    this.#tables = tables;
    this.#letters = letters;
    this.#receiptsMs = limits.receiptRetentionSeconds * 1_000;
    this.#lettersMs = limits.deadLetterRetentionSeconds * 1_000;
    this.#receiptWalk = new RetentionWalk(tables.receipts);
    this.#letterWalk = new RetentionWalk(tables.dead);
  }

  /** Their keys begin with the time of their ids, and no mail is settled before it has one. */
  sweepReceipts(lifeMs: number, limit: number): number {
    const end = sequenceKey(Math.max(0, Date.now() - this.#receiptsMs));
    return this.#receiptWalk.step(
      limit,
      end,
      (_, value) => readSettledAtMs(value) < lifeMs - this.#receiptsMs,
    );
  }

  /** With them those of devices that were deleted. */
  sweepLetters(lifeMs: number, limit: number): number {
    const { devices } = this.#tables;
    return this.#letterWalk.step(
      limit,
      undefined,
      (key, value) =>
        readDiedAtMs(value) < lifeMs - this.#lettersMs ||
        !devices.doesExist(keyOfDevice(readDevice(key, deadDeviceAt))),
      (key) => this.#letters.forget(key),
    );
  }
}
