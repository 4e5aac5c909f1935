import { Condition } from '../../core/async.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { LogPage } from '../../domain/records/record.ts';
import type { Shard } from '../../domain/shard.ts';
import { EventLoopBudget } from './event-loop-budget.ts';

/** Pages cached per log, small ones only: readers at the end of a log read the same pages. */
const cachedPagesMax = 2;
const cachedRecordsMax = 1_000;
/** Short, so that trimmed records are not returned any more. */
const cacheMs = 100;
/** Interval of polling the log ends while somebody waits. */
const pollMs = 20;

/** State of the logs at a moment, to wait for a change since. */
export interface LogMark {
  ends: readonly number[];
  wakes: number;
}

/** Reads the logs of all shards, with pages and polling shared by all readers. */
export class LogReader {
  readonly shards: readonly Shard[];
  readonly #log: Log;
  readonly #budget = new EventLoopBudget();
  readonly #pages: Map<number, { page: LogPage; readMs: number }>[];
  readonly #waiting = new Condition();
  #ends: readonly number[] = [];
  #wakes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(shards: readonly Shard[], log: Log) {
    this.shards = shards;
    this.#log = log;
    this.#pages = shards.map(() => new Map());
  }

  /** For every shard, the position of its next record. */
  async ends(): Promise<number[]> {
    return Promise.all(this.shards.map((shard) => shard.logEnd()));
  }

  /** Reads the page at `from`; `next` equals `from` where there is none. */
  async page(shard: number, from: number): Promise<LogPage> {
    const pages = this.#pages[shard] as Map<number, { page: LogPage; readMs: number }>;
    const cached = pages.get(from);
    let page = cached && performance.now() - cached.readMs < cacheMs ? cached.page : undefined;
    if (page === undefined) {
      await this.#budget.take();
      page = await this.#shard(shard).records(from);
      if (page.next !== from && page.records.length <= cachedRecordsMax)
        addToCache(pages, from, { page, readMs: performance.now() });
      if (page.damaged) {
        this.#log.error({ shard, position: from }, 'records: skipped a damaged batch of the log');
      }
    }
    return page;
  }

  /** Take it before reading, so that `changed` misses nothing stored later. */
  async mark(): Promise<LogMark> {
    return { ends: await this.ends(), wakes: this.#wakes };
  }

  /** Settles when a log has grown or `wake` was called since `mark`, on timeout, or on abort. */
  async changed(mark: LogMark, timeoutMs: number, signal: AbortSignal): Promise<void> {
    const now = await this.mark();
    if (signal.aborted || now.wakes !== mark.wakes || differ(now.ends, mark.ends)) return;
    if (this.#timer === undefined) {
      this.#ends = now.ends;
      this.#timer = setTimeout(() => void this.#poll(), pollMs);
    }
    await this.#waiting.wait(signal, { msMax: timeoutMs });
  }

  async #poll(): Promise<void> {
    try {
      const ends = await this.ends();
      if (differ(ends, this.#ends)) this.wake();
      this.#ends = ends;
    } catch {
      // Each waiter reads for itself and reports the error.
      this.wake();
    }
    this.#timer = this.#waiting.size === 0 ? undefined : setTimeout(() => void this.#poll(), pollMs);
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
