import { KeyedSingleFlight } from '../../core/async.ts';
import { ApiError } from '../../core/errors.ts';
import { formatUuid, generateUuid } from '../../core/uuid.ts';
import type { RecordKind, StoredRecord } from '../../domain/records/record.ts';
import type { ConsumerJournal, KeptConsumer } from './consumer-tables.ts';
import type { LogReader } from './log-reader.ts';
import { matcherOf } from './record-cursor.ts';
import { type BatchLease, type BatchLimits, ShardCursor } from './shard-cursor.ts';

/** Until a fetch that waits looks again by itself. */
const waitMsMax = 5_000;

export interface ConsumerSettings {
  /** Which records it is given; empty for all. */
  kinds: readonly RecordKind[];
  schemas: readonly string[];
  /** Undefined: the configuration's. */
  leaseSeconds: number | undefined;
}

/** Where a new consumer begins: in front of all records, behind them, or with what was stored at a time. */
export type ConsumerStart = 'earliest' | 'latest' | number;

export interface FetchOptions extends BatchLimits {
  /** Who asks, for those who look at the consumer. */
  worker: string;
  /** Only what this one has; of any, unless it is given. */
  shard?: number;
}

/** Records of one log, behind each other, that nobody else is given until they are acknowledged or released. */
export interface ConsumerBatchRecords {
  id: string;
  shard: number;
  records: readonly StoredRecord[];
  /** Then it is given to whoever asks next. */
  expiresAtMs: number;
  /** Settles when it is on disk. @throws ApiError batch_not_found, unavailable. */
  acknowledge(): Promise<void>;
  /** Has it given again at once; false when it is nobody's any more. */
  release(): boolean;
}

/** How a consumer is doing in the log of one shard. */
export interface ShardCursorStatus {
  shard: number;
  position: number;
  /** Positions of the log, of all fleets, that are not done yet. */
  behind: number;
  /** Age of what stands at its position; 0 where nothing does. */
  secondsBehind: number;
  lost: number;
  lease: Readonly<BatchLease> | undefined;
}

/** How long a worker has for a batch before it is given again; each consumer may say another. */
const leaseSecondsDefault = 30;

export interface ConsumerOptions {
  fleetId: string;
  name: string;
  kept: KeptConsumer;
  journal: ConsumerJournal;
  reader: LogReader;
  logEnds: readonly number[];
}

/**
 * A reader with a name: it has a place in every log, which only an acknowledgement moves past a wanted record. What
 * was given and not acknowledged is given again: after its lease, and after a restart, which knows of no leases.
 */
export class Consumer {
  readonly fleetId: string;
  readonly name: string;
  readonly #options: ConsumerOptions;
  readonly #lanes: readonly ShardCursor[];
  #kept: KeptConsumer;
  #wants: (record: StoredRecord) => boolean;
  /** Where the next search begins, so that no log is always the last. */
  #first = 0;
  readonly #acknowledging = new KeyedSingleFlight<string, number>();
  #isGiving = true;
  #isEnded = false;

  constructor(options: ConsumerOptions) {
    const { fleetId, name, kept, journal, logEnds } = options;
    this.fleetId = fleetId;
    this.name = name;
    this.#options = options;
    this.#kept = kept;
    this.#wants = matcherOf(fleetId, kept);
    this.#lanes = logEnds.map((logEnd, shard) => new ShardCursor(journal, kept.id, shard, logEnd));
  }

  get kept(): KeptConsumer {
    return this.#kept;
  }

  get leaseSeconds(): number {
    return this.#kept.leaseSeconds ?? leaseSecondsDefault;
  }

  /** From now on; a batch that is out stays as it is. */
  change(kept: KeptConsumer): void {
    this.#kept = kept;
    this.#wants = matcherOf(this.fleetId, kept);
    this.#options.reader.wake();
  }

  /** The server stops: whoever waits is answered nothing. What is out can still be acknowledged. */
  stopGiving(): void {
    this.#isGiving = false;
    this.#options.reader.wake();
  }

  /** It was deleted: nothing is written of it any more. */
  end(): void {
    this.#isEnded = true;
    this.stopGiving();
  }

  /** Waits for records that are free to be given until the signal says otherwise; looks once at least. */
  async fetch(options: FetchOptions, signal: AbortSignal): Promise<ConsumerBatchRecords | undefined> {
    const { reader } = this.#options;
    for (;;) {
      const mark = await reader.mark();
      let hasMore = false;
      for (const lane of this.#inTurn()) {
        if (!this.#isGiving) return undefined;
        if (lane.shard !== (options.shard ?? lane.shard)) continue;
        const logEnd = mark.ends[lane.shard] ?? 0;
        if (lane.position >= logEnd || !lane.isFree(performance.now())) continue;
        const found = await this.#look(lane, logEnd, options);
        if (typeof found !== 'boolean') return found;
        hasMore ||= found;
      }
      if (!this.#isGiving || signal.aborted) return undefined;
      if (!hasMore) await reader.changed(mark, this.#leasesEndInMs(), signal);
    }
  }

  /**
   * Answers of how many records it is, once that is on disk; 0 when it was acknowledged before, since an answer may
   * be lost. @throws ApiError batch_not_found, unavailable.
   */
  async acknowledge(batchId: string): Promise<number> {
    if (this.#lanes.some(({ lastAcknowledged }) => lastAcknowledged === batchId)) return 0;
    return this.#acknowledging.run(batchId, () =>
      this.#acknowledge(this.#leased(batchId)).finally(() => this.#options.reader.wake()),
    );
  }

  async #acknowledge(lane: ShardCursor): Promise<number> {
    const { batchId, to, records } = lane.lease as BatchLease;
    lane.isBusy = true;
    try {
      await lane.finish(to, () => !this.#isEnded);
      lane.lease = undefined;
      lane.lastAcknowledged = batchId;
    } finally {
      lane.isBusy = false;
    }
    return records;
  }

  /** Has the batch given again at once. Answers of how many records it is. @throws ApiError batch_not_found. */
  release(batchId: string): number {
    const lane = this.#leased(batchId);
    const { records } = lane.lease as BatchLease;
    lane.lease = undefined;
    this.#options.reader.wake();
    return records;
  }

  /** Positions of all logs that are not done yet, and how many were trimmed before it came there. */
  progress(ends: readonly number[]): { behind: number; lost: number } {
    const sum = { behind: 0, lost: 0 };
    for (const { shard, position, lost } of this.#lanes) {
      sum.behind += Math.max(0, (ends[shard] ?? 0) - position);
      sum.lost += lost;
    }
    return sum;
  }

  /** `logEnds`: as they were a moment ago, for whoever looks at many. */
  async status(logEnds?: readonly number[]): Promise<ShardCursorStatus[]> {
    const { reader } = this.#options;
    const ends = logEnds ?? (await reader.ends());
    const nowMs = performance.now();
    return Promise.all(
      this.#lanes.map(async ({ shard, position, lost, lease }) => {
        const behind = Math.max(0, (ends[shard] ?? 0) - position);
        const atMs = behind === 0 ? undefined : await reader.shards[shard]?.timeAt(position);
        const secondsBehind = atMs === undefined ? 0 : Math.max(0, (Date.now() - atMs) / 1_000);
        const isOut = lease !== undefined && lease.endsMs > nowMs;
        return { shard, position, behind, secondsBehind, lost, lease: isOut ? lease : undefined };
      }),
    );
  }

  /** Whether its place is further than is on disk, by records that nobody wanted. */
  get isStored(): boolean {
    return this.#lanes.every(({ isStored }) => isStored);
  }

  /** Inside a write transaction. Answers what to call once that is on disk. */
  store(): () => void {
    // One that is acknowledged in the same transaction is not to be set back.
    const lanes = this.#isEnded ? [] : this.#lanes.filter(({ isBusy, isStored }) => !isBusy && !isStored);
    const stored = lanes.map((lane) => lane.store());
    return () => {
      for (const done of stored) done();
    };
  }

  /** A batch; or none, and whether there is more to be looked at now. */
  async #look(
    lane: ShardCursor,
    logEnd: number,
    options: FetchOptions,
  ): Promise<ConsumerBatchRecords | boolean> {
    lane.isBusy = true;
    try {
      const { records, to, hasMore } = await lane.look(this.#options.reader, logEnd, this.#wants, options);
      // One that has expired is from now on nobody's, whatever was found.
      lane.lease = undefined;
      if (records.length === 0 || !this.#isGiving) return hasMore;
      this.#first = lane.shard + 1;
      return this.#lend(lane, records, to, options.worker);
    } finally {
      lane.isBusy = false;
    }
  }

  #lend(
    lane: ShardCursor,
    records: readonly StoredRecord[],
    to: number,
    worker: string,
  ): ConsumerBatchRecords {
    const leaseMs = this.leaseSeconds * 1_000;
    const id = formatUuid(generateUuid());
    const expiresAtMs = Date.now() + leaseMs;
    const endsMs = performance.now() + leaseMs;
    lane.lease = { batchId: id, worker, to, records: records.length, expiresAtMs, endsMs };
    return {
      id,
      shard: lane.shard,
      records,
      expiresAtMs,
      acknowledge: async () => {
        await this.acknowledge(id);
      },
      release: () => {
        if (lane.lease?.batchId !== id || lane.isBusy) return false;
        this.release(id);
        return true;
      },
    };
  }

  #leased(batchId: string): ShardCursor {
    const lane = this.#lanes.find(({ lease, isBusy }) => lease?.batchId === batchId && !isBusy);
    if (lane === undefined) throw new ApiError('batch_not_found');
    return lane;
  }

  *#inTurn(): Generator<ShardCursor> {
    for (let index = 0; index < this.#lanes.length; index += 1) {
      yield this.#lanes[(this.#first + index) % this.#lanes.length] as ShardCursor;
    }
  }

  #leasesEndInMs(): number {
    const nowMs = performance.now();
    const ends = this.#lanes.flatMap(({ lease }) => (lease === undefined ? [] : [lease.endsMs - nowMs]));
    return Math.min(waitMsMax, ...ends.map((ms) => Math.max(1, Math.ceil(ms))));
  }
}
