import type { StoredRecord } from '../../domain/records/record.ts';
import type { Journal } from '../../storage/tables/journal.ts';
import { Cursor, Cursors } from '../records/cursor.ts';
import type { LogFollower } from '../records/log-follower.ts';

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

/** The place of one consumer in one shard's log. Leases one batch at a time, to keep the order per device. */
export class ShardCursor {
  readonly shard: number;
  /** Every record before it is done, or does not match. */
  position: number;
  lease: BatchLease | undefined;
  lastAcknowledged: string | undefined;
  /** During a poll, or while an acknowledgement is being written. */
  isBusy = false;
  readonly #journal: Journal;
  readonly #cursor: Cursor;

  /** Caps the position at `logEnd`: a log that was restored by hand may be shorter than the stored position. */
  constructor(journal: Journal, id: Buffer, shard: number, logEnd: number) {
    this.#journal = journal;
    this.#cursor = new Cursor(new Cursors(journal), id, shard);
    this.shard = shard;
    this.position = Math.min(this.#cursor.position, logEnd);
  }

  /** Positions before its own, of any fleet, that were trimmed before they were read. */
  get lost(): number {
    return this.#cursor.lostBefore(this.position);
  }

  get isStored(): boolean {
    return this.position === this.#cursor.position;
  }

  isFree(nowMs: number): boolean {
    return !this.isBusy && (this.lease === undefined || this.lease.endsMs <= nowMs);
  }

  /**
   * Finds the next matching records and moves past what is before them, which needs no acknowledgement. `logEnd` must
   * have been read before.
   */
  async poll(
    { follower, fleetId }: { follower: LogFollower; fleetId: string },
    logEnd: number,
    matches: (record: StoredRecord) => boolean,
    { recordsMax, bytesMax }: BatchLimits,
  ): Promise<FoundRecords> {
    const untilMs = performance.now() + pollMsMax;
    const records: StoredRecord[] = [];
    let bytes = 0;
    let at = this.#cursor.next(this.position);
    /** Position up to which trimmed records are noted. */
    let checkedTo = at;
    const pass = (to: number, next = to): void => {
      this.#cursor.skip(checkedTo, to);
      checkedTo = Math.max(checkedTo, next);
    };
    while (records.length < recordsMax) {
      const page = await follower.page(fleetId, this.shard, at);
      if (page.next === at) {
        // There are no records from here on: those before the earlier end were trimmed.
        at = Math.max(at, logEnd);
        pass(at);
        break;
      }
      for (const record of page.records) {
        pass(record.position, record.position + 1);
        if (this.#cursor.isDone(record.position) || !matches(record)) continue;
        bytes += record.payload.length;
        if (records.length > 0 && (records.length === recordsMax || bytes > bytesMax)) {
          return this.#found(records, record.position, true);
        }
        records.push(record);
      }
      pass(page.next);
      at = this.#cursor.next(page.next);
      if (performance.now() >= untilMs) return this.#found(records, at, at < logEnd);
    }
    return this.#found(records, at, false);
  }

  #found(records: StoredRecord[], to: number, hasMore: boolean): FoundRecords {
    this.position = records[0]?.position ?? to;
    return { records, to, hasMore };
  }

  /** Marks everything before `to` as done; settles once durable. */
  async finish(to: number, isCurrent: () => boolean): Promise<void> {
    let settle = (): void => {};
    await this.#journal.commit(() => {
      if (isCurrent()) settle = this.#cursor.store(to);
    });
    settle();
    this.position = to;
  }

  /** Writes the position inside a write transaction. Returns what to call once that is durable. */
  store(): () => void {
    return this.#cursor.store(this.position);
  }
}
