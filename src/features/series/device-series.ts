import { correctionMsMax } from '../../core/clock.ts';
import { unavailable } from '../../core/errors.ts';
import { FairShare } from '../../core/fair-share.ts';
import { type DeviceKey, fleetIdOf } from '../../core/identity.ts';
import { logRecordBytes, type StoredRecord } from '../../domain/records/record.ts';
import type { Shard } from '../../domain/shard.ts';
import type { LogFollower } from '../records/log-follower.ts';
import { type BucketSpan, Buckets, bucketSpan, type FieldSeries } from './buckets.ts';
import { payloadNumbers } from './payload-numbers.ts';

/** Selects the numbers of a device's datapoints. */
export interface SeriesQuery {
  device: DeviceKey;
  schema: string;
  /** JSON Pointers; undefined: all numbers at the top level. */
  fields: readonly string[] | undefined;
  fromMs: number;
  toMs: number;
  /** Maximum buckets. */
  pointsMax: number;
}

export interface Series extends BucketSpan {
  fields: FieldSeries[];
  /** From there on nothing was left out. */
  completeFromMs: number;
  /** True if a bound left something out: older records, or fields. */
  isPartial: boolean;
}

/** Series read at the same time, shared by fleets. */
const readsMax = 8;
/** Maximum fields of one series. */
const fieldsMax = 8;
/** Bounds of one read, over records of all devices of the shard: their bytes, their number, and its time. */
const scannedBytesMax = 67_108_864;
const scannedRecordsMax = 500_000;
const readMsMax = 2_000;
/** Positions that are read at once, backwards: small beside the bounds. */
const stepPositions = 1_024;

/** Remaining budget of one read's scan. */
class ScanBudget {
  #bytesLeft = scannedBytesMax;
  #recordsLeft = scannedRecordsMax;
  readonly #endMs = performance.now() + readMsMax;

  spend(record: StoredRecord): void {
    this.#bytesLeft -= logRecordBytes(record);
    this.#recordsLeft -= 1;
  }

  get isSpent(): boolean {
    return this.#bytesLeft <= 0 || this.#recordsLeft <= 0 || performance.now() >= this.#endMs;
  }
}

export interface DeviceSeriesOptions {
  follower: LogFollower;
  shards: { of(device: DeviceKey): Shard };
}

/**
 * Computes the charts of a device from the logs, which have no index by device: so it reads from the end backwards, and
 * what a bound leaves out is the oldest.
 */
export class DeviceSeries {
  readonly #options: DeviceSeriesOptions;
  readonly #reads = new FairShare(readsMax);

  constructor(options: DeviceSeriesOptions) {
    this.#options = options;
  }

  /** @throws ApiError unavailable while too many are read. */
  async read(query: SeriesQuery): Promise<Series> {
    const fleetId = fleetIdOf(query.device);
    if (!this.#reads.take(fleetId)) throw unavailable('Too many charts are being read. Retry later.');
    try {
      return await this.#read(query);
    } finally {
      this.#reads.release(fleetId);
    }
  }

  async #read(query: SeriesQuery): Promise<Series> {
    const { fromMs, toMs, pointsMax } = query;
    const span = bucketSpan(fromMs, toMs, pointsMax);
    const buckets = new Buckets(span, fieldsMax);
    const budget = new ScanBudget();
    let completeFromMs = fromMs;
    for (const [shard, untilMs] of await this.#logsOf(query)) {
      const reachedMs = await this.#scan(shard, { ...query, toMs: untilMs }, buckets, budget);
      completeFromMs = Math.max(completeFromMs, reachedMs);
    }
    const isPartial = completeFromMs > fromMs || buckets.hasMoreFields;
    return { ...span, fields: buckets.series(), completeFromMs, isPartial };
  }

  /**
   * The logs with records of the device, and until when. Before the shard count grew they went to a shard of a lower
   * number; a log that began before the span is of a shard that was there all the time.
   */
  async #logsOf({ device, fromMs, toMs }: SeriesQuery): Promise<[shard: number, untilMs: number][]> {
    const { follower, shards } = this.#options;
    const own = shards.of(device);
    const index = follower.shards.indexOf(own);
    const firstMs = (await own.log.timeAt(0)) ?? toMs;
    if (firstMs <= fromMs) return [[index, toMs]];
    const lower = Array.from({ length: index }, (_, shard): [number, number] => [
      shard,
      Math.min(toMs, firstMs + correctionMsMax),
    ]);
    return [[index, toMs], ...lower];
  }

  /** Returns the time from which on everything was read. */
  async #scan(shard: number, query: SeriesQuery, buckets: Buckets, budget: ScanBudget): Promise<number> {
    const { log } = this.#options.follower.shards[shard] as Shard;
    const { fromMs, toMs } = query;
    const first = await log.positionAt(fromMs);
    const last = Math.max(await log.positionAt(toMs + correctionMsMax), await log.reorderedUntil());
    for (let end = last; end > first; end -= stepPositions) {
      if (budget.isSpent) return Math.min(toMs, (await log.timeAt(end)) ?? toMs);
      await this.#step(shard, Math.max(first, end - stepPositions), end, (record) => {
        budget.spend(record);
        take(record, query, buckets);
      });
    }
    return fromMs;
  }

  async #step(
    shard: number,
    from: number,
    to: number,
    onRecord: (record: StoredRecord) => void,
  ): Promise<void> {
    for (let position = from; position < to; ) {
      const page = await this.#options.follower.page(shard, position);
      if (page.next === position) return;
      for (const record of page.records) if (record.position < to) onRecord(record);
      position = page.next;
    }
  }
}

function take(record: StoredRecord, query: SeriesQuery, buckets: Buckets): void {
  const { device, schema, fields, fromMs, toMs } = query;
  const { storedAtMs } = record;
  const timeMs = record.recordedAtMs ?? storedAtMs;
  if (record.device !== device || record.kind !== 'datapoint' || record.schema !== schema) return;
  // Found by when it was stored, and shown where the device says that it was.
  if (storedAtMs >= toMs || timeMs < fromMs || timeMs >= toMs) return;
  for (const [field, value] of payloadNumbers(record.payload, fields)) {
    buckets.add(field, timeMs, value);
  }
}
