import { ApiError, unavailable } from '../../core/errors.ts';
import { FairShare } from '../../core/fair-share.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { StoredRecord } from '../../domain/records/record.ts';
import type { Shard } from '../../domain/shard.ts';
import { type LatestRecords, readLatest } from './latest-records.ts';
import type { LogFollower } from './log-follower.ts';
import { isCursor, matcherOf, positionsOf, startsAt } from './record-cursor.ts';
import { recordLine } from './record-line.ts';
import type { LatestQuery, RecordService, RecordsQuery } from './record-service.ts';
import { RecordStream } from './record-stream.ts';

/** Bytes written to the connection at once. */
const chunkBytes = 65_536;
const progressMs = 1_000;
/** Interval of empty lines on an idle stream, so that no proxy times it out. */
const keepAliveMs = 15_000;
/** Longest read before the stream reports or yields. */
const readMsMax = 1_000;
const emptyLine = Buffer.from('\n');
/** Period of a limit of records a second, and of telling how many were skipped. */
const skipMs = 1_000;

/** Lets so many records pass in each second, and counts the others. */
class RecordSkipper {
  readonly #perSecondMax: number;
  #sinceMs = performance.now();
  #passed = 0;
  #skipped = 0;

  constructor(perSecondMax = Number.POSITIVE_INFINITY) {
    this.#perSecondMax = perSecondMax;
  }

  passes(): boolean {
    if (this.#passed >= this.#perSecondMax) this.#skipped += 1;
    else {
      this.#passed += 1;
      return true;
    }
    return false;
  }

  /** Begins a new second if the last is over; returns how many were skipped in it. */
  takeSkipped(): number {
    if (performance.now() - this.#sinceMs < skipMs) return 0;
    const skipped = this.#skipped;
    this.#sinceMs = performance.now();
    this.#passed = 0;
    this.#skipped = 0;
    return skipped;
  }

  /** Time until it has to tell; infinite if there is nothing to tell. */
  get dueInMs(): number {
    if (this.#skipped === 0) return Number.POSITIVE_INFINITY;
    return Math.max(1, this.#sinceMs + skipMs - performance.now());
  }
}

export interface RecordsOptions {
  follower: LogFollower;
  shards: { of(device: DeviceKey): Shard };
  config: { recordStreamsMax: number };
}

/** Reads the records of a fleet from all logs. */
export class Records implements RecordService {
  readonly #options: RecordsOptions;
  readonly #streams: FairShare;

  constructor(options: RecordsOptions) {
    this.#options = options;
    this.#streams = new FairShare(options.config.recordStreamsMax);
  }

  async read(query: RecordsQuery, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    if (query.after !== undefined && query.after !== 'latest' && !isCursor(query.after)) {
      throw new ApiError('bad_request', { msg: 'after must be the cursor of a record, or latest.' });
    }
    const { fleetId } = query;
    if (!this.#streams.take(fleetId)) throw tooManyStreams();
    try {
      return this.#counted(fleetId, this.#lines(query, await this.#open(query), signal), signal);
    } catch (error) {
      this.#streams.release(fleetId);
      throw error;
    }
  }

  find(device: DeviceKey, id: Uint8Array, position: number): Promise<StoredRecord | undefined> {
    return this.#options.follower.find(device, id, position, this.#shardsOf([device]));
  }

  async latest({ fleetId, kinds, schemas, devices, ...wanted }: LatestQuery): Promise<LatestRecords> {
    if (!this.#streams.take(fleetId)) throw tooManyStreams();
    try {
      const filter = { ...(kinds && { kinds }), ...(schemas && { schemas }), ...(devices && { devices }) };
      const matches = matcherOf(fleetId, filter);
      return await readLatest(this.#options.follower, {
        ...wanted,
        fleetId,
        devices,
        shards: this.#shardsOf(devices),
        matches,
      });
    } finally {
      this.#streams.release(fleetId);
    }
  }

  /** The number of shards to read: records from before the shard count grew are in the log of a lower shard. */
  #shardsOf(devices: readonly DeviceKey[] | undefined): number {
    const { follower, shards } = this.#options;
    const all = follower.shards.length;
    return Math.max(...(devices?.map((device) => follower.shards.indexOf(shards.of(device)) + 1) ?? [all]));
  }

  /** Releases the share at the end of the lines, or on abort if they are never read. */
  #counted(fleetId: string, lines: AsyncGenerator<Buffer>, signal: AbortSignal): AsyncIterable<Buffer> {
    let isOpen = true;
    const end = (): void => {
      if (isOpen) this.#streams.release(fleetId);
      isOpen = false;
    };
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
    async function* counted(): AsyncGenerator<Buffer> {
      try {
        yield* lines;
      } finally {
        end();
      }
    }
    return counted();
  }

  async #open(query: RecordsQuery): Promise<RecordStream> {
    const { follower } = this.#options;
    const { fleetId, kinds, schemas, devices, fromMs, toMs, after, follow } = query;
    const [only, ...others] = devices ?? [];
    const ends = await follower.ends();
    const positions = await this.#positions(after, ends);
    if (fromMs !== undefined) {
      const positionsFrom = await Promise.all(follower.shards.map((shard) => shard.log.positionAt(fromMs)));
      for (const [shard, position] of positionsFrom.entries())
        positions[shard] = Math.max(positions[shard] ?? 0, position);
    }
    const matches = matcherOf(fleetId, {
      ...(kinds && { kinds }),
      ...(schemas && { schemas }),
      ...(devices && { devices }),
      ...(fromMs !== undefined && { fromMs }),
      ...(toMs !== undefined && { toMs }),
    });
    return new RecordStream(follower, {
      fleetId,
      starts: await startsAt(positions, follower),
      ...(!follow && { ends }),
      ...(toMs !== undefined && { toMs }),
      ...(only !== undefined && others.length === 0 && { device: { device: only, until: ends } }),
      shards: this.#shardsOf(devices),
      matches,
    });
  }

  async #positions(after: string | undefined, ends: readonly number[]): Promise<number[]> {
    if (after === undefined) return ends.map(() => 0);
    return after === 'latest' ? [...ends] : positionsOf(after, this.#options.follower);
  }

  async *#lines(
    { limit = Number.POSITIVE_INFINITY, follow, progress, perSecondMax }: RecordsQuery,
    stream: RecordStream,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    const { follower } = this.#options;
    const skipper = new RecordSkipper(perSecondMax);
    let left = limit;
    let reportedMs = performance.now();
    // Headers are sent with the first bytes of the body: tells a follower that the stream is open.
    if (follow) yield emptyLine;
    while (!signal.aborted && left > 0) {
      const mark = await follower.mark();
      const lines: Buffer[] = [];
      let bytes = 0;
      const skipped = skipper.takeSkipped();
      if (skipped > 0) lines.push(skippedLine(stream, skipped));
      const hasMore = await stream.read((record) => {
        if (!skipper.passes()) return true;
        const line = recordLine(record, stream.cursor);
        lines.push(line);
        bytes += line.length;
        left -= 1;
        return bytes < chunkBytes && left > 0;
      }, performance.now() + Math.min(readMsMax, skipper.dueInMs));
      const isDue = performance.now() - reportedMs >= (progress ? progressMs : keepAliveMs);
      if (isDue && progress) lines.push(progressLine(stream, mark.ends));
      else if (isDue && bytes === 0) lines.push(emptyLine);
      if (isDue || (!progress && bytes > 0)) reportedMs = performance.now();
      if (lines.length > 0) yield Buffer.concat(lines);
      if (stream.isEnded) break;
      const waitMs = Math.min(progress ? progressMs : keepAliveMs, skipper.dueInMs);
      if (!hasMore) await follower.changed(mark, waitMs, signal);
    }
    // Aborts the response, so that no client takes it for complete.
    if (signal.aborted && !follow) throw unavailable('The server is stopping.');
    if (progress) yield progressLine(stream, await follower.ends());
  }
}

function skippedLine({ cursor }: RecordStream, skipped: number): Buffer {
  return Buffer.from(`{"skipped":${skipped},"cursor":"${cursor}"}\n`);
}

function tooManyStreams(): ApiError {
  return unavailable(
    'Too many open record streams, of this fleet or of all (recordStreamsMax). Retry later.',
  );
}

function progressLine(stream: RecordStream, ends: readonly number[]): Buffer {
  const total = ends.reduce((sum, end) => sum + end, 0);
  return Buffer.from(`{"cursor":"${stream.cursor}","passed":${stream.position},"total":${total}}\n`);
}
