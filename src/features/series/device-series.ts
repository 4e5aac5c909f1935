import { EventLoopBudget } from '../../core/async.ts';
import { correctionMsMax } from '../../core/clock.ts';
import { isUnavailable, unavailable } from '../../core/errors.ts';
import { FairShare } from '../../core/fair-share.ts';
import { type DeviceKey, fleetIdOf } from '../../core/identity.ts';
import type { Fleets } from '../../declarations/fleet.ts';
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
  /** True if a bound left something out: older records, those that took too long to parse, or fields. */
  isPartial: boolean;
}

/** Series read at the same time, shared by fleets. */
const readsMax = 8;
/** Maximum fields of one series. */
const fieldsMax = 8;
/**
 * Bounds of one read: bytes of the device's records, and pages of them, each some milliseconds. A page without records
 * is of a log that is not indexed yet.
 */
const defaultBytesMax = 67_108_864;
const pagesMax = 1_000;
const pageRecordsMax = 2_000;
/** Payloads that are parsed in one piece of an event loop turn; of usual ones a fraction of a millisecond's work. */
const pieceBytes = 16_384;

/** Remaining budget of one read. */
class ReadBudget {
  #bytesLeft: number;
  #pagesLeft = pagesMax;

  constructor(bytesMax: number) {
    this.#bytesLeft = bytesMax;
  }

  spend(records: readonly StoredRecord[]): void {
    for (const record of records) this.#bytesLeft -= logRecordBytes(record);
    this.#pagesLeft -= 1;
  }

  get isSpent(): boolean {
    return this.#bytesLeft <= 0 || this.#pagesLeft <= 0;
  }
}

export interface DeviceSeriesOptions {
  follower: LogFollower;
  shards: { of(device: DeviceKey): Shard };
  fleets: Pick<Fleets, 'parse'>;
  /** Bytes of the device's records that one read takes. */
  bytesMax?: number;
}

/** Computes the charts of a device from its records, newest first: what a bound leaves out is the oldest. */
export class DeviceSeries {
  readonly #options: DeviceSeriesOptions;
  readonly #reads = new FairShare(readsMax);
  readonly #turns = new EventLoopBudget();

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
    const budget = new ReadBudget(this.#options.bytesMax ?? defaultBytesMax);
    let completeFromMs = fromMs;
    for (const [shard, untilMs] of await this.#logsOf(query)) {
      const reachedMs = await this.#readLog(shard, { ...query, toMs: untilMs }, buckets, budget);
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
  async #readLog(shard: number, query: SeriesQuery, buckets: Buckets, budget: ReadBudget): Promise<number> {
    const { log } = this.#options.follower.shards[shard] as Shard;
    const { fromMs, toMs } = query;
    const from = await log.positionAt(fromMs);
    const to = Math.max(await log.positionAt(toMs + correctionMsMax), await log.reorderedUntil());
    const position = await this.#readPart(shard, { from, to }, query, buckets, budget);
    if (position > from) return Math.min(toMs, (await log.timeAt(position)) ?? toMs);
    // What its device kept back was recorded in the span and stored behind it.
    const end = await log.end();
    const lateFrom = await this.#readPart(shard, { from: to, to: end }, query, buckets, budget);
    return lateFrom > to ? toMs : fromMs;
  }

  /** Reads a part of a log, newest first; returns the position from which on it was read. */
  async #readPart(
    shard: number,
    part: { from: number; to: number },
    query: SeriesQuery,
    buckets: Buckets,
    budget: ReadBudget,
  ): Promise<number> {
    const { from } = part;
    let { to } = part;
    while (to > from && !budget.isSpent) {
      const span = { from, to, isNewestFirst: true, recordsMax: pageRecordsMax };
      const { records, next } = await this.#options.follower.ofDevice(shard, query.device, span);
      budget.spend(records);
      const stoppedAt = await this.#takePage(records, query, buckets);
      if (stoppedAt !== undefined) return stoppedAt;
      to = next;
    }
    return to;
  }

  /**
   * Takes a page piece by piece: a megabyte of payloads may be half a second of parsing. Returns where it stopped, if it
   * did since the fleet's take too long.
   */
  async #takePage(
    records: readonly StoredRecord[],
    query: SeriesQuery,
    buckets: Buckets,
  ): Promise<number | undefined> {
    const fleetId = fleetIdOf(query.device);
    let bytesLeft = 0;
    for (const record of records) {
      if (bytesLeft <= 0) {
        await this.#turns.take(fleetId);
        bytesLeft = pieceBytes;
      }
      bytesLeft -= record.payload.length;
      try {
        this.#take(record, query, buckets);
      } catch (error) {
        if (isUnavailable(error)) return record.position + 1;
        throw error;
      }
    }
    return undefined;
  }

  /** @throws ApiError unavailable */
  #take(record: StoredRecord, query: SeriesQuery, buckets: Buckets): void {
    const { device, schema, fields, fromMs, toMs } = query;
    // Shown where the device says that it was.
    const timeMs = record.recordedAtMs ?? record.storedAtMs;
    if (record.kind !== 'datapoint' || record.schema !== schema) return;
    if (timeMs < fromMs || timeMs >= toMs) return;
    const numbersOf = (payload: Buffer): [string, number][] => payloadNumbers(payload, fields);
    for (const [field, value] of this.#options.fleets.parse(fleetIdOf(device), record.payload, numbersOf)) {
      buckets.add(field, timeMs, value);
    }
  }
}
