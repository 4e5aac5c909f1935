import type { Table } from '../environment/stored-tables.ts';
import { readDiedAtMs } from '../layout/dead-letter-record.ts';
import { deadDeviceAt, keyOfDevice, readDevice, sequenceKey } from '../layout/keys.ts';
import { readSettledAtMs } from '../layout/receipt-record.ts';
import type { Tables } from '../layout/tables.ts';
import type { DeadLetters } from './dead-letters.ts';

/** Records scanned without a pause, even if few have expired: about a second of a shard's time each minute. */
const pauseAfterRecords = 100_000;
/** Value bytes per step: a dead letter includes its payload. */
const stepBytesMax = 1024 ** 2;

/**
 * Removes expired records from a table that is not ordered by expiry: scans it from front to end, some records at a
 * time, and then again. The position is kept in memory: a restart begins anew.
 */
export class RetentionWalk {
  readonly #table: Table;
  #last: Buffer | undefined;
  #sincePause = 0;

  constructor(table: Table) {
    this.#table = table;
  }

  /**
   * Scans at most `limit` records before `end`. Returns the number removed, or `limit` if the caller should continue
   * at once: neither the end nor the pause is reached.
   */
  step(
    limit: number,
    end: Buffer | undefined,
    isExpired: (key: Buffer, value: Buffer) => boolean,
    onRemove: (key: Buffer) => void = () => {},
  ): number {
    const from = this.#last === undefined ? {} : { start: this.#last, exclusiveStart: true };
    const expired: Buffer[] = [];
    let scanned = 0;
    let bytes = 0;
    for (const { key, value } of this.#table.getRange({ ...from, ...(end && { end }), limit })) {
      scanned += 1;
      bytes += value.length;
      this.#last = key;
      if (isExpired(key, value)) expired.push(key);
      if (bytes >= stepBytesMax) break;
    }
    for (const key of expired) {
      this.#table.removeSync(key);
      onRemove(key);
    }
    const isAtEnd = scanned < limit && bytes < stepBytesMax;
    if (isAtEnd) this.#last = undefined;
    this.#sincePause += scanned;
    if (!isAtEnd && this.#sincePause < pauseAfterRecords) return limit;
    this.#sincePause = 0;
    return Math.min(expired.length, limit - 1);
  }
}

export interface MailRetentionLimits {
  receiptRetentionSeconds: number;
  deadLetterRetentionSeconds: number;
}

/** Removes expired receipts and dead letters, inside the owner's write transaction. */
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

  /** Scans only old ids: keys begin with the time of the id, and no mail is settled before it has one. */
  sweepReceipts(lifeMs: number, limit: number): number {
    const end = sequenceKey(Math.max(0, Date.now() - this.#receiptsMs));
    return this.#receiptWalk.step(
      limit,
      end,
      (_, value) => readSettledAtMs(value) < lifeMs - this.#receiptsMs,
      (key) => this.#tables.replies.removeSync(key),
    );
  }

  /** Also removes letters of deleted devices. */
  sweepLetters(lifeMs: number, limit: number): number {
    const { devices } = this.#tables;
    return this.#letterWalk.step(
      limit,
      undefined,
      (key, value) =>
        readDiedAtMs(value) < lifeMs - this.#lettersMs ||
        !devices.doesExist(keyOfDevice(readDevice(key, deadDeviceAt))),
      (key) => this.#letters.noteRemoved(key),
    );
  }
}
