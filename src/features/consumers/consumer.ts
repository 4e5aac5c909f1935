import { KeyedSingleFlight } from '../../core/async.ts';
import { ApiError } from '../../core/errors.ts';
import { formatUuid, generateUuid } from '../../core/uuid.ts';
import type { RecordKind, StoredRecord } from '../../domain/records/record.ts';
import type { Journal } from '../../storage/tables/journal.ts';
import type { LogFollower } from '../records/log-follower.ts';
import { matcherOf } from '../records/record-cursor.ts';
import type { ConsumerDeclaration } from './consumer-tables.ts';
import { type BatchLease, type BatchLimits, ShardCursor } from './shard-cursor.ts';

/** Longest time between two polls of a waiting fetch. */
const pollIntervalMsMax = 5_000;

export interface ConsumerSettings {
  /** Kinds and schemas it reads; empty for all. */
  kinds: readonly RecordKind[];
  schemas: readonly string[];
  /** Undefined: the default. */
  leaseSeconds: number | undefined;
  /** False: it is paused, that is, keeps its cursors and leases no further batch. */
  enabled: boolean;
}

/** Start of a new consumer: at the first record, after the last one, or at a time in ms. */
export type ConsumerStart = 'earliest' | 'latest' | number;

/** Start of a consumer that was declared elsewhere: at positions, unless there are other logs since. */
export interface DeclaredStart {
  since: readonly number[];
  createdAtMs: number;
}

export interface FetchOptions extends BatchLimits {
  /** Name of the client, shown in the consumer's status. */
  worker: string;
  /** Absent: any shard. */
  shard?: number;
}

/** Consecutive records of one log, leased to one client until it acknowledges or releases them. */
export interface ConsumerBatchRecords {
  id: string;
  shard: number;
  records: readonly StoredRecord[];
  /** End of the lease; the next fetch gets the batch again. */
  expiresAtMs: number;
  /** Settles once durable. @throws ApiError batch_not_found, unavailable. */
  acknowledge(): Promise<void>;
  /** Makes it available again at once; false if its lease is no longer held. */
  release(): boolean;
}

/** Cursor, lag and lease of a consumer in the log of one shard. */
export interface ShardCursorStatus {
  shard: number;
  position: number;
  /** Positions of the log, of all fleets, not done yet. */
  behind: number;
  /** Age of the record at the position; 0 where there is none. */
  secondsBehind: number;
  lost: number;
  lease: Readonly<BatchLease> | undefined;
}

/** Default lease of a batch. */
const leaseSecondsDefault = 30;

export interface ConsumerOptions {
  fleetId: string;
  name: string;
  declaration: ConsumerDeclaration;
  journal: Journal;
  follower: LogFollower;
  logEnds: readonly number[];
}

/**
 * A named reader with a cursor in every log, which only an acknowledgement moves past a matching record. Redelivers
 * what was not acknowledged: after its lease, and after a restart, since leases are in memory only.
 */
export class Consumer {
  readonly fleetId: string;
  readonly name: string;
  readonly #options: ConsumerOptions;
  readonly #cursors: readonly ShardCursor[];
  #declaration: ConsumerDeclaration;
  #matches: (record: StoredRecord) => boolean;
  /** Shard polled first, rotated so that no log is always last. */
  #firstShard = 0;
  readonly #acknowledging = new KeyedSingleFlight<string, number>();
  #isServing = true;
  #isEnded = false;

  constructor(options: ConsumerOptions) {
    const { fleetId, name, declaration, journal, logEnds } = options;
    this.fleetId = fleetId;
    this.name = name;
    this.#options = options;
    this.#declaration = declaration;
    this.#matches = matcherOf(fleetId, declaration);
    this.#cursors = logEnds.map((logEnd, shard) => new ShardCursor(journal, declaration.id, shard, logEnd));
  }

  get declaration(): ConsumerDeclaration {
    return this.#declaration;
  }

  get enabled(): boolean {
    return this.#declaration.enabled;
  }

  get leaseSeconds(): number {
    return this.#declaration.leaseSeconds ?? leaseSecondsDefault;
  }

  /** Applies from the next poll on; a leased batch stays as it is. */
  change(declaration: ConsumerDeclaration): void {
    this.#declaration = declaration;
    this.#matches = matcherOf(this.fleetId, declaration);
    this.#options.follower.wake();
  }

  /** Ends waiting fetches without records when the server stops. Leased batches can still be acknowledged. */
  stopServing(): void {
    this.#isServing = false;
    this.#options.follower.wake();
  }

  /** Stops all writes for a deleted consumer. */
  end(): void {
    this.#isEnded = true;
    this.stopServing();
  }

  /** Waits for records that are not leased, and while it is paused, until the signal aborts; polls at least once. */
  async fetch(options: FetchOptions, signal: AbortSignal): Promise<ConsumerBatchRecords | undefined> {
    const { follower } = this.#options;
    for (;;) {
      const mark = await follower.mark();
      let hasMore = false;
      for (const cursor of this.#cursorsInTurn()) {
        if (!this.#isServing) return undefined;
        if (!this.enabled) break;
        if (cursor.shard !== (options.shard ?? cursor.shard)) continue;
        const logEnd = mark.ends[cursor.shard] ?? 0;
        if (cursor.position >= logEnd || !cursor.isFree(performance.now())) continue;
        const found = await this.#poll(cursor, logEnd, options);
        if (typeof found !== 'boolean') return found;
        hasMore ||= found;
      }
      if (!this.#isServing || signal.aborted) return undefined;
      if (!hasMore) await follower.changed(mark, this.#nextPollMs(), signal);
    }
  }

  /**
   * Returns the number of records once durable; 0 if it was acknowledged before, as the first answer may have been
   * lost. @throws ApiError batch_not_found, unavailable.
   */
  async acknowledge(batchId: string): Promise<number> {
    if (this.#cursors.some(({ lastAcknowledged }) => lastAcknowledged === batchId)) return 0;
    return this.#acknowledging.run(batchId, () =>
      this.#acknowledge(this.#leasedCursor(batchId)).finally(() => this.#options.follower.wake()),
    );
  }

  async #acknowledge(cursor: ShardCursor): Promise<number> {
    const { batchId, to, records } = cursor.lease as BatchLease;
    cursor.isBusy = true;
    try {
      await cursor.finish(to, () => !this.#isEnded);
      cursor.lease = undefined;
      cursor.lastAcknowledged = batchId;
    } finally {
      cursor.isBusy = false;
    }
    return records;
  }

  /** Makes the batch available again at once; returns its number of records. @throws ApiError batch_not_found. */
  release(batchId: string): number {
    const cursor = this.#leasedCursor(batchId);
    const { records } = cursor.lease as BatchLease;
    cursor.lease = undefined;
    this.#options.follower.wake();
    return records;
  }

  /** `logEnds` may be a moment old; passing them saves reading them for each of many consumers. */
  async status(logEnds?: readonly number[]): Promise<ShardCursorStatus[]> {
    const { follower } = this.#options;
    const ends = logEnds ?? (await follower.ends());
    const nowMs = performance.now();
    return Promise.all(
      this.#cursors.map(async ({ shard, position, lost, lease }) => {
        const behind = Math.max(0, (ends[shard] ?? 0) - position);
        const atMs = behind === 0 ? undefined : await follower.shards[shard]?.log.timeAt(position);
        const secondsBehind = atMs === undefined ? 0 : Math.max(0, (Date.now() - atMs) / 1_000);
        const isOut = lease !== undefined && lease.endsMs > nowMs;
        return { shard, position, behind, secondsBehind, lost, lease: isOut ? lease : undefined };
      }),
    );
  }

  /** False if a cursor in memory is ahead of the disk, past records that did not match. */
  get isStored(): boolean {
    return this.#cursors.every(({ isStored }) => isStored);
  }

  /** Writes the cursors inside a write transaction. Returns what to call once that is durable. */
  store(): () => void {
    // An acknowledgement in the same transaction must not be overwritten by an older position.
    const cursors = this.#isEnded ? [] : this.#cursors.filter(({ isBusy, isStored }) => !isBusy && !isStored);
    const stored = cursors.map((cursor) => cursor.store());
    return () => {
      for (const done of stored) done();
    };
  }

  /** Returns a batch or, without one, whether there is more to read now. */
  async #poll(
    cursor: ShardCursor,
    logEnd: number,
    options: FetchOptions,
  ): Promise<ConsumerBatchRecords | boolean> {
    cursor.isBusy = true;
    try {
      const { records, to, hasMore } = await cursor.poll(this.#options, logEnd, this.#matches, options);
      // An expired lease ends here, whatever was found.
      cursor.lease = undefined;
      if (records.length === 0 || !this.#isServing || !this.enabled) return hasMore;
      this.#firstShard = cursor.shard + 1;
      return this.#lend(cursor, records, to, options.worker);
    } finally {
      cursor.isBusy = false;
    }
  }

  #lend(
    cursor: ShardCursor,
    records: readonly StoredRecord[],
    to: number,
    worker: string,
  ): ConsumerBatchRecords {
    const leaseMs = this.leaseSeconds * 1_000;
    const id = formatUuid(generateUuid());
    const expiresAtMs = Date.now() + leaseMs;
    const endsMs = performance.now() + leaseMs;
    cursor.lease = { batchId: id, worker, to, records: records.length, expiresAtMs, endsMs };
    return {
      id,
      shard: cursor.shard,
      records,
      expiresAtMs,
      acknowledge: async () => {
        await this.acknowledge(id);
      },
      release: () => {
        if (cursor.lease?.batchId !== id || cursor.isBusy) return false;
        this.release(id);
        return true;
      },
    };
  }

  #leasedCursor(batchId: string): ShardCursor {
    const cursor = this.#cursors.find(({ lease, isBusy }) => lease?.batchId === batchId && !isBusy);
    if (cursor === undefined) throw new ApiError('batch_not_found');
    return cursor;
  }

  *#cursorsInTurn(): Generator<ShardCursor> {
    for (let index = 0; index < this.#cursors.length; index += 1) {
      yield this.#cursors[(this.#firstShard + index) % this.#cursors.length] as ShardCursor;
    }
  }

  /** Milliseconds until a lease ends, which is no matter while it is paused. */
  #nextPollMs(): number {
    if (!this.enabled) return pollIntervalMsMax;
    const nowMs = performance.now();
    const ends = this.#cursors.flatMap(({ lease }) => (lease === undefined ? [] : [lease.endsMs - nowMs]));
    return Math.min(pollIntervalMsMax, ...ends.map((ms) => Math.max(1, Math.ceil(ms))));
  }
}
