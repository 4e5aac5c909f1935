import type { Table } from '../environment/stored-tables.ts';
import { readDiedAtMs } from '../layout/dead-letter-record.ts';
import { deadDeviceAt, keyOfDevice, readDevice, sequenceKey } from '../layout/keys.ts';
import { readSettledAtMs } from '../layout/receipt-record.ts';
import type { Tables } from '../layout/tables.ts';
import type { DeadLetters } from './dead-letters.ts';

/** Looked at without a rest, however few of them are over: a second or so of a shard's time each minute. */
const restAfterRecords = 100_000;
/** Of values in one step: a dead letter has its payload with it. */
const stepBytesMax = 1024 ** 2;

/**
 * Removes what is over from a table whose order is not that of its end: walks through it, some records at a time, from
 * the front to the end and then again from the front. Where it is, is kept in memory: a restart begins anew.
 */
export class RetentionWalk {
  readonly #table: Table;
  #last: Buffer | undefined;
  #sinceRest = 0;

  constructor(table: Table) {
    this.#table = table;
  }

  /**
   * Looks at `limit` records at most, none of them from `end` on. Answers how many it removed, or `limit` where it is
   * worth going on at once: the end is not reached, nor is it time to rest.
   */
  step(
    limit: number,
    end: Buffer | undefined,
    isOver: (key: Buffer, value: Buffer) => boolean,
    onRemove: (key: Buffer) => void = () => {},
  ): number {
    const from = this.#last === undefined ? {} : { start: this.#last, exclusiveStart: true };
    const over: Buffer[] = [];
    let looked = 0;
    let bytes = 0;
    for (const { key, value } of this.#table.getRange({ ...from, ...(end && { end }), limit })) {
      looked += 1;
      bytes += value.length;
      this.#last = key;
      if (isOver(key, value)) over.push(key);
      if (bytes >= stepBytesMax) break;
    }
    for (const key of over) {
      this.#table.removeSync(key);
      onRemove(key);
    }
    const isAtEnd = looked < limit && bytes < stepBytesMax;
    if (isAtEnd) this.#last = undefined;
    this.#sinceRest += looked;
    if (!isAtEnd && this.#sinceRest < restAfterRecords) return limit;
    this.#sinceRest = 0;
    return Math.min(over.length, limit - 1);
  }
}

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
