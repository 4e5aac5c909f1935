import { ApiError, unavailable } from '../../core/errors.ts';
import { FairShare } from '../../core/fair-share.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { Shard } from '../../domain/shard.ts';
import type { LogReader } from './log-reader.ts';
import { isCursor, matcherOf, positionsOf, startsAt } from './record-cursor.ts';
import { recordLine } from './record-line.ts';
import { RecordStream } from './record-stream.ts';
import type { RecordService, RecordsQuery } from './service.ts';

/** What is given to the connection at once. */
const chunkBytes = 65_536;
const progressMs = 1_000;
/** A stream without records says something so often, lest somebody on the way takes it for dead. */
const aliveMs = 15_000;
/** The longest search in one go. */
const readMsMax = 1_000;
const emptyLine = Buffer.from('\n');

export interface RecordsOptions {
  reader: LogReader;
  shards: { of(device: DeviceKey): Shard };
  config: { recordStreamsMax: number };
}

/** The records of a fleet out of all logs. */
export class Records implements RecordService {
  readonly #options: RecordsOptions;
  readonly #streams: FairShare;

  constructor(options: RecordsOptions) {
    this.#options = options;
    this.#streams = new FairShare(options.config.recordStreamsMax);
  }

  async read(query: RecordsQuery, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    if (query.after !== undefined && query.after !== 'latest' && !isCursor(query.after)) {
      throw new ApiError('bad_request', { msg: 'after is the cursor of a record, or latest.' });
    }
    const { fleetId } = query;
    if (!this.#streams.take(fleetId)) {
      throw unavailable('Too many streams of records are open, of this fleet or of all (recordStreamsMax).');
    }
    try {
      return this.#counted(fleetId, this.#lines(query, await this.#open(query), signal), signal);
    } catch (error) {
      this.#streams.release(fleetId);
      throw error;
    }
  }

  /** One that is never begun ends with the signal. */
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
    const { reader, shards } = this.#options;
    const { fleetId, kinds, schemas, devices, fromMs, toMs, after, follow } = query;
    const ends = await reader.ends();
    const positions = await this.#positions(after, ends);
    if (fromMs !== undefined) {
      const fronts = await Promise.all(reader.shards.map((shard) => shard.positionAt(fromMs)));
      for (const [shard, front] of fronts.entries())
        positions[shard] = Math.max(positions[shard] ?? 0, front);
    }
    const wants = matcherOf(fleetId, {
      ...(kinds && { kinds }),
      ...(schemas && { schemas }),
      ...(devices && { devices }),
      ...(fromMs !== undefined && { fromMs }),
      ...(toMs !== undefined && { toMs }),
    });
    return new RecordStream(reader, {
      starts: await startsAt(positions, reader),
      ...(!follow && { ends }),
      ...(toMs !== undefined && { toMs }),
      // What a device sent before the count grew lies in the log of a lower shard.
      shards: Math.max(
        ...(devices?.map((device) => reader.shards.indexOf(shards.of(device)) + 1) ?? [ends.length]),
      ),
      wants,
    });
  }

  async #positions(after: string | undefined, ends: readonly number[]): Promise<number[]> {
    if (after === undefined) return ends.map(() => 0);
    return after === 'latest' ? [...ends] : positionsOf(after, this.#options.reader);
  }

  async *#lines(
    { limit = Number.POSITIVE_INFINITY, follow, progress }: RecordsQuery,
    stream: RecordStream,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    const { reader } = this.#options;
    let left = limit;
    let toldMs = performance.now();
    // The head of the answer goes with the first of its body, and whoever follows wants to know that it is open.
    if (follow) yield emptyLine;
    while (!signal.aborted && left > 0) {
      const mark = await reader.mark();
      const lines: Buffer[] = [];
      let bytes = 0;
      const hasMore = await stream.read((record) => {
        const line = recordLine(record, stream.cursor);
        lines.push(line);
        bytes += line.length;
        left -= 1;
        return bytes < chunkBytes && left > 0;
      }, performance.now() + readMsMax);
      const isDue = performance.now() - toldMs >= (progress ? progressMs : aliveMs);
      if (isDue && progress) lines.push(progressLine(stream, mark.ends));
      else if (isDue && bytes === 0) lines.push(emptyLine);
      if (isDue || (!progress && bytes > 0)) toldMs = performance.now();
      if (lines.length > 0) yield Buffer.concat(lines);
      if (stream.isEnded) break;
      if (!hasMore) await reader.changed(mark, progress ? progressMs : aliveMs, signal);
    }
    // Broken off, so that nobody takes it for whole.
    if (signal.aborted && !follow) throw unavailable('The server is stopping.');
    if (progress) yield progressLine(stream, await reader.ends());
  }
}

function progressLine(stream: RecordStream, ends: readonly number[]): Buffer {
  const total = ends.reduce((sum, end) => sum + end, 0);
  return Buffer.from(`{"cursor":"${stream.cursor}","passed":${stream.position},"total":${total}}\n`);
}
