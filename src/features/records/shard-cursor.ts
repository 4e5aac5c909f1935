import type { StoredRecord } from '../../domain/records/record.ts';
import {
  type ConsumerJournal,
  consumerShardKey,
  doneKey,
  positionValue,
  type Range,
  storedProgress,
} from './consumer-tables.ts';
import type { LogReader } from './log-reader.ts';

/** One search for records before the next log has its turn. */
const lookMsMax = 50;

/** A batch that somebody works on. */
export interface BatchLease {
  batchId: string;
  worker: string;
  /** Behind its last record. */
  to: number;
  records: number;
  expiresAtMs: number;
  /** The same by the monotonic clock, which no jump changes. */
  endsMs: number;
}

export interface BatchLimits {
  recordsMax: number;
  bytesMax: number;
}

/** What was found in a log: records, up to `to`; and whether the search was not at its end. */
export interface FoundRecords {
  records: StoredRecord[];
  to: number;
  hasMore: boolean;
}

/** One consumer in the log of one shard. One batch at a time is out of it, so that the order of a device holds. */
export class ShardCursor {
  readonly shard: number;
  /** Every record of the log before it is done, or not wanted. */
  position: number;
  /** Positions in front of its own that were gone from the log before it came there, whosever records they were. */
  lost: number;
  /** The same of what was looked at last behind its position: they count when that is acknowledged. */
  #gone = 0;
  lease: BatchLease | undefined;
  lastAcknowledged: string | undefined;
  /** While it is looked through, or an acknowledgement is being written. */
  isBusy = false;
  readonly #id: Buffer;
  readonly #journal: ConsumerJournal;
  #done: Range[];
  #stored: number;

  /** `logEnd`: what is stored may be ahead of a log that was restored by hand; it is not to wait for it. */
  constructor(journal: ConsumerJournal, id: Buffer, shard: number, logEnd: number) {
    const { position, lost, done } = storedProgress(journal.tables, id, shard);
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
   * The next wanted records. What is in front of them is passed: nobody needs to acknowledge it. `logEnd` was asked
   * before.
   */
  async look(
    reader: LogReader,
    logEnd: number,
    wants: (record: StoredRecord) => boolean,
    { recordsMax, bytesMax }: BatchLimits,
  ): Promise<FoundRecords> {
    const untilMs = performance.now() + lookMsMax;
    const records: StoredRecord[] = [];
    let bytes = 0;
    let at = this.#behindDone(this.position);
    /** Up to where it is known what is gone. */
    let known = at;
    this.#gone = 0;
    const pass = (to: number, next = to): void => {
      if (to > known) this.#gone += this.#notDone(known, to);
      known = Math.max(known, next);
    };
    while (records.length < recordsMax) {
      const page = await reader.page(this.shard, at);
      if (page.next === at) {
        // Nothing stands from there on: what was before the end then is gone.
        at = Math.max(at, logEnd);
        pass(at);
        break;
      }
      for (const record of page.records) {
        pass(record.position, record.position + 1);
        if (this.#behindDone(record.position) > record.position || !wants(record)) continue;
        bytes += record.payload.length;
        if (records.length > 0 && (records.length === recordsMax || bytes > bytesMax)) {
          return this.#found(records, record.position, true);
        }
        if (records.length === 0) this.#countLost();
        records.push(record);
      }
      pass(page.next);
      at = this.#behindDone(page.next);
      if (performance.now() >= untilMs) return this.#found(records, at, at < logEnd);
    }
    return this.#found(records, at, false);
  }

  #found(records: StoredRecord[], to: number, hasMore: boolean): FoundRecords {
    this.position = records[0]?.position ?? to;
    if (records.length === 0) this.#countLost();
    return { records, to, hasMore };
  }

  /** Settles when it is on disk that everything before `to` is done. */
  async finish(to: number, isKept: () => boolean): Promise<void> {
    await this.#journal.commit(() => {
      if (isKept()) this.#put(to, this.lost + this.#gone);
    });
    this.#countLost();
    this.#passed(to);
  }

  /** Inside a write transaction. Answers what to call once that is on disk. */
  store(): () => void {
    const { position } = this;
    this.#put(position);
    return () => this.#passed(position, false);
  }

  #put(position: number, lost = this.lost): void {
    const { consumerPositions, consumerDone } = this.#journal.tables;
    consumerPositions.putSync(consumerShardKey(this.#id, this.shard), positionValue(position, lost));
    for (const { from, to } of this.#done) {
      if (to <= position) consumerDone.removeSync(doneKey(this.#id, this.shard, from));
    }
  }

  #passed(position: number, isAcknowledged = true): void {
    if (isAcknowledged) this.position = position;
    this.#stored = position;
    this.#done = this.#done.filter(({ to }) => to > position);
  }

  #countLost(): void {
    this.lost += this.#gone;
    this.#gone = 0;
  }

  /** How many of these positions are not done already. */
  #notDone(from: number, to: number): number {
    const overlaps = this.#done.map((range) => Math.min(to, range.to) - Math.max(from, range.from));
    return overlaps.reduce((left, overlap) => left - Math.max(0, overlap), to - from);
  }

  /** The first position from there on that is not done already. */
  #behindDone(position: number): number {
    let at = position;
    for (const { from, to } of this.#done) if (from <= at && at < to) at = to;
    return at;
  }
}
