import { Condition } from '../../core/async.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { LogPage } from '../../domain/records/record.ts';
import type { Shard } from '../../domain/shard.ts';
import { EventLoopBudget } from './event-loop-budget.ts';

/** Of one log, and none that is long: whoever reads at its end reads the same ones. */
const pagesKept = 2;
const pageRecordsKept = 1_000;
/** No longer than they are read together: what is trimmed is not to be given any more. */
const pageKeptMs = 100;
/** How often the ends of the logs are looked at while somebody waits for more. */
const lookMs = 20;

/** How the logs were at a moment, for whoever waits until they are not any more. */
export interface LogMark {
  ends: readonly number[];
  wakes: number;
}

/** The logs of all shards, for everything of this room that reads them. */
export class LogReader {
  readonly shards: readonly Shard[];
  readonly #log: Log;
  readonly #turns = new EventLoopBudget();
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

  /** Of every shard: the position that its next record gets. */
  async ends(): Promise<number[]> {
    return Promise.all(this.shards.map((shard) => shard.logEnd()));
  }

  /** What stands there; `next` is `from` where nothing does. */
  async page(shard: number, from: number): Promise<LogPage> {
    const pages = this.#pages[shard] as Map<number, { page: LogPage; readMs: number }>;
    const kept = pages.get(from);
    let page = kept && performance.now() - kept.readMs < pageKeptMs ? kept.page : undefined;
    if (page === undefined) {
      await this.#turns.take();
      page = await this.#shard(shard).records(from);
      if (page.next !== from && page.records.length <= pageRecordsKept)
        keep(pages, from, { page, readMs: performance.now() });
      if (page.damaged) {
        this.#log.error({ shard, position: from }, 'records: a damaged batch of the log is passed over');
      }
    }
    return page;
  }

  /** To be taken before looking, so that `changed` misses nothing that came after. */
  async mark(): Promise<LogMark> {
    return { ends: await this.ends(), wakes: this.#wakes };
  }

  /** Settles when some log has grown since `mark`, or somebody was woken; after that time, or with the signal. */
  async changed(mark: LogMark, timeoutMs: number, signal: AbortSignal): Promise<void> {
    const now = await this.mark();
    if (signal.aborted || now.wakes !== mark.wakes || differ(now.ends, mark.ends)) return;
    if (this.#timer === undefined) {
      this.#ends = now.ends;
      this.#timer = setTimeout(() => void this.#look(), lookMs);
    }
    await this.#waiting.wait(signal, { msMax: timeoutMs });
  }

  async #look(): Promise<void> {
    try {
      const ends = await this.ends();
      if (differ(ends, this.#ends)) this.wake();
      this.#ends = ends;
    } catch {
      // Whoever waits looks for himself, and says what is wrong.
      this.wake();
    }
    this.#timer = this.#waiting.size === 0 ? undefined : setTimeout(() => void this.#look(), lookMs);
  }

  /** Has everybody who waits look again. */
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

function keep<T>(pages: Map<number, T>, from: number, page: T): void {
  pages.delete(from);
  pages.set(from, page);
  for (const oldest of pages.keys()) {
    if (pages.size <= pagesKept) break;
    pages.delete(oldest);
  }
}

function differ(ends: readonly number[], others: readonly number[]): boolean {
  return ends.some((end, shard) => end !== others[shard]);
}
