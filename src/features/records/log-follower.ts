import { Condition, EventLoopBudget } from '../../core/async.ts';
import { type DeviceKey, fleetIdOf } from '../../core/identity.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { DevicePage, DeviceSpan, LogPage, StoredRecord } from '../../domain/records/record.ts';
import type { Shard } from '../../domain/shard.ts';

/** Pages cached per log, small ones only: readers at the end of a log read the same pages. */
const cachedPagesMax = 2;
const cachedRecordsMax = 1_000;
/** Short, so that trimmed records are not returned any more. */
const cacheMs = 100;
/** Interval of polling the log ends while somebody waits: short for a while after a log has grown. */
const busyPollMs = 5;
const idlePollMs = 20;
const idleAfterMs = 1_000;

/** State of the logs at a moment, to wait for a change since. */
export interface LogMark {
  ends: readonly number[];
  wakes: number;
}

/** Follows the logs of all shards, with pages, polling and time of the event loop shared by all readers. */
export class LogFollower {
  readonly shards: readonly Shard[];
  readonly #log: Log;
  readonly #budget = new EventLoopBudget();
  readonly #pages: Map<number, { page: LogPage; readMs: number }>[];
  readonly #waiting = new Condition();
  #ends: readonly number[] = [];
  #wakes = 0;
  #grewMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(shards: readonly Shard[], log: Log) {
    this.shards = shards;
    this.#log = log;
    this.#pages = shards.map(() => new Map());
  }

  /** For every shard, the position of its next record. */
  async ends(): Promise<number[]> {
    return Promise.all(this.shards.map((shard) => shard.log.end()));
  }

  /** Age of the oldest record at these positions, one of each shard; undefined where nothing waits. */
  async secondsBehind(positions: readonly (number | undefined)[]): Promise<number> {
    const times = await Promise.all(
      positions.map((position, shard) =>
        position === undefined ? undefined : this.shards[shard]?.log.timeAt(position),
      ),
    );
    const nowMs = Date.now();
    return Math.max(0, ...times.map((atMs = nowMs) => (nowMs - atMs) / 1_000));
  }

  /** Reads the page at `from` for a fleet, which has a turn beside others; `next` equals `from` where there is none. */
  async page(fleetId: string, shard: number, from: number): Promise<LogPage> {
    await this.#budget.take(fleetId);
    const pages = this.#pages[shard] as Map<number, { page: LogPage; readMs: number }>;
    const cached = pages.get(from);
    let page = cached && performance.now() - cached.readMs < cacheMs ? cached.page : undefined;
    if (page === undefined) {
      page = await this.#shard(shard).log.read(from);
      if (page.next !== from && page.records.length <= cachedRecordsMax)
        addToCache(pages, from, { page, readMs: performance.now() });
      if (page.damaged) {
        this.#log.error({ shard, position: from }, 'records: skipped a damaged batch of the log');
      }
    }
    return page;
  }

  /** A device's record of this id at a position of one of the first so many logs; undefined once retention removed it. */
  async find(
    device: DeviceKey,
    id: Uint8Array,
    position: number,
    shards: number,
  ): Promise<StoredRecord | undefined> {
    for (let shard = shards - 1; shard >= 0; shard -= 1) {
      const [record] = (await this.page(fleetIdOf(device), shard, position)).records;
      if (record?.id.equals(id)) return record;
    }
    return undefined;
  }

  /** Reads the last page before a position, likewise; `next` equals `before` where there is none. */
  async pageBefore(fleetId: string, shard: number, before: number): Promise<LogPage> {
    await this.#budget.take(fleetId);
    return this.#shard(shard).log.readBefore(before);
  }

  /** Reads the records of one device alone. */
  async ofDevice(shard: number, device: DeviceKey, span: DeviceSpan): Promise<DevicePage> {
    await this.#budget.take(fleetIdOf(device));
    return this.#shard(shard).log.ofDevice(device, span);
  }

  /** Take it before reading, so that `changed` misses nothing stored later. */
  async mark(): Promise<LogMark> {
    return { ends: await this.ends(), wakes: this.#wakes };
  }

  /** Settles when a log has grown or `wake` was called since `mark`, on timeout, or on abort. */
  async changed(mark: LogMark, timeoutMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const now = await this.mark();
    if (signal.aborted || now.wakes !== mark.wakes || differ(now.ends, mark.ends)) return;
    if (this.#timer === undefined) {
      this.#ends = now.ends;
      this.#pollSoon();
    }
    await this.#waiting.wait(signal, { msMax: timeoutMs });
  }

  async #poll(): Promise<void> {
    try {
      const ends = await this.ends();
      if (differ(ends, this.#ends)) {
        this.#grewMs = performance.now();
        this.wake();
      }
      this.#ends = ends;
    } catch {
      // Each waiter reads for itself and reports the error.
      this.wake();
    }
    this.#timer = undefined;
    if (this.#waiting.size > 0) this.#pollSoon();
  }

  #pollSoon(): void {
    const isIdle = performance.now() - this.#grewMs > idleAfterMs;
    this.#timer = setTimeout(() => void this.#poll(), isIdle ? idlePollMs : busyPollMs);
  }

  /** Makes all waiters poll again. */
  wake(): void {
    this.#wakes += 1;
    this.#waiting.wakeAll();
  }

  #shard(index: number): Shard {
    const shard = this.shards[index];
    if (shard === undefined) throw new Error(`there is no shard ${index}`);
    return shard;
  }
}

function addToCache<T>(pages: Map<number, T>, from: number, page: T): void {
  pages.delete(from);
  pages.set(from, page);
  for (const oldest of pages.keys()) {
    if (pages.size <= cachedPagesMax) break;
    pages.delete(oldest);
  }
}

function differ(ends: readonly number[], others: readonly number[]): boolean {
  return ends.some((end, shard) => end !== others[shard]);
}
