import type { StoredRecord } from '../../domain/records/record.ts';
import {
  type ConsumerJournal,
  consumerShardKey,
  doneKey,
  positionValue,
  type Range,
  readStoredCursor,
} from './consumer-tables.ts';
import type { LogReader } from './log-reader.ts';

/** Longest poll of one log before the next has its turn. */
const pollMsMax = 50;

/** A batch that is being worked on. */
export interface BatchLease {
  batchId: string;
  worker: string;
  /** Position after its last record. */
  to: number;
  records: number;
  expiresAtMs: number;
  /** `expiresAtMs` by the monotonic clock, unaffected by clock jumps. */
  endsMs: number;
}

export interface BatchLimits {
  recordsMax: number;
  bytesMax: number;
}

/** Records found before position `to`, and whether the poll stopped before the end of the log. */
export interface FoundRecords {
  records: StoredRecord[];
  to: number;
  hasMore: boolean;
}

/** The cursor of one consumer in one shard's log. Leases one batch at a time, to keep the order per device. */
export class ShardCursor {
  readonly shard: number;
  /** Every record before it is done, or does not match. */
  position: number;
  /** Positions before its own, of any fleet, that were trimmed before they were read. */
  lost: number;
  /** Trimmed positions found by the last poll, added to `lost` once the batch is acknowledged. */
  #trimmed = 0;
  lease: BatchLease | undefined;
  lastAcknowledged: string | undefined;
  /** During a poll, or while an acknowledgement is being written. */
  isBusy = false;
  readonly #id: Buffer;
  readonly #journal: ConsumerJournal;
  #done: Range[];
  #stored: number;

  /** Caps the position at `logEnd`: a log that was restored by hand may be shorter than the stored position. */
  constructor(journal: ConsumerJournal, id: Buffer, shard: number, logEnd: number) {
    const { position, lost, done } = readStoredCursor(journal.tables, id, shard);
    this.#journal = journal;
    this.#id = id;
    this.shard = shard;
    this.position = Math.min(position, logEnd);
    this.lost = lost;
    this.#done = done;
    this.#stored = position;
  }

  get isStored(): boolean {
    return this.position === this.#stored;
  }

  isFree(nowMs: number): boolean {
    return !this.isBusy && (this.lease === undefined || this.lease.endsMs <= nowMs);
  }

  /**
   * Finds the next matching records and moves past what is before them, which needs no acknowledgement. `logEnd` must
   * have been read before.
   */
  async poll(
    reader: LogReader,
    logEnd: number,
    matches: (record: StoredRecord) => boolean,
    { recordsMax, bytesMax }: BatchLimits,
  ): Promise<FoundRecords> {
    const untilMs = performance.now() + pollMsMax;
    const records: StoredRecord[] = [];
    let bytes = 0;
    let at = this.#nextNotDone(this.position);
    /** Position up to which trimmed records are counted. */
    let checkedTo = at;
    this.#trimmed = 0;
    const pass = (to: number, next = to): void => {
      if (to > checkedTo) this.#trimmed += this.#countNotDone(checkedTo, to);
      checkedTo = Math.max(checkedTo, next);
    };
    while (records.length < recordsMax) {
      const page = await reader.page(this.shard, at);
      if (page.next === at) {
        // There are no records from here on: those before the earlier end were trimmed.
        at = Math.max(at, logEnd);
        pass(at);
        break;
      }
      for (const record of page.records) {
        pass(record.position, record.position + 1);
        if (this.#nextNotDone(record.position) > record.position || !matches(record)) continue;
        bytes += record.payload.length;
        if (records.length > 0 && (records.length === recordsMax || bytes > bytesMax)) {
          return this.#found(records, record.position, true);
        }
        if (records.length === 0) this.#countLost();
        records.push(record);
      }
      pass(page.next);
      at = this.#nextNotDone(page.next);
      if (performance.now() >= untilMs) return this.#found(records, at, at < logEnd);
    }
    return this.#found(records, at, false);
  }

  #found(records: StoredRecord[], to: number, hasMore: boolean): FoundRecords {
    this.position = records[0]?.position ?? to;
    if (records.length === 0) this.#countLost();
    return { records, to, hasMore };
  }

  /** Marks everything before `to` as done; settles once durable. */
  async finish(to: number, isCurrent: () => boolean): Promise<void> {
    await this.#journal.commit(() => {
      if (isCurrent()) this.#put(to, this.lost + this.#trimmed);
    });
    this.#countLost();
    this.#moveTo(to);
  }

  /** Writes the position inside a write transaction. Returns what to call once that is durable. */
  store(): () => void {
    const { position } = this;
    this.#put(position);
    return () => this.#moveTo(position, false);
  }

  #put(position: number, lost = this.lost): void {
    const { consumerPositions, consumerDone } = this.#journal.tables;
    consumerPositions.putSync(consumerShardKey(this.#id, this.shard), positionValue(position, lost));
    for (const { from, to } of this.#done) {
      if (to <= position) consumerDone.removeSync(doneKey(this.#id, this.shard, from));
    }
  }

  #moveTo(position: number, isAcknowledged = true): void {
    if (isAcknowledged) this.position = position;
    this.#stored = position;
    this.#done = this.#done.filter(({ to }) => to > position);
  }

  #countLost(): void {
    this.lost += this.#trimmed;
    this.#trimmed = 0;
  }

  /** Counts the positions in [from, to) that are not done yet. */
  #countNotDone(from: number, to: number): number {
    const overlaps = this.#done.map((range) => Math.min(to, range.to) - Math.max(from, range.from));
    return overlaps.reduce((left, overlap) => left - Math.max(0, overlap), to - from);
  }

  /** First position from `position` on that is not done yet. */
  #nextNotDone(position: number): number {
    let at = position;
    for (const { from, to } of this.#done) if (from <= at && at < to) at = to;
    return at;
  }
}
