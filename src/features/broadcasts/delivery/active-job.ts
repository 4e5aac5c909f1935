import { Mutex, sleep, yieldToEventLoop } from '../../../core/async.ts';
import type { Shard } from '../../../domain/shard.ts';
import type { JobKey } from '../tables.ts';
import type { Delivered, Job, JobProgress } from './job.ts';
import type { JobStore } from './job-store.ts';

/** Walks devices by id over all shards, so that the order does not depend on the number of shards. */
interface DeviceWalk {
  /** Returns the next ids, up to `limit`; none at the end. */
  next(limit: number): Promise<string[]>;
}

/** Ids per read of one shard: a fraction of a millisecond of this thread. */
const pageSize = 256;

/** Ids in order, and the id to continue after; undefined at the end. There may be none, and still more to come. */
interface IdPage {
  ids: string[];
  reached: string | undefined;
}

type ReadIds = (shard: Shard, after: string) => Promise<IdPage>;

interface Part {
  shard: Shard;
  ids: string[];
  at: number;
  /** Device id to read on from; undefined at the end. */
  after: string | undefined;
}

/** Merges the sorted ids of all shards. */
class ShardWalk implements DeviceWalk {
  readonly #read: ReadIds;
  readonly #parts: Part[];

  constructor(shards: readonly Shard[], read: ReadIds, after: string) {
    this.#read = read;
    this.#parts = shards.map((shard) => ({ shard, ids: [], at: 0, after }));
  }

  async next(limit: number): Promise<string[]> {
    const found: string[] = [];
    while (found.length < limit) {
      for (const part of this.#parts) {
        while (part.at === part.ids.length && part.after !== undefined) await this.#refill(part, part.after);
      }
      const first = lowest(this.#parts);
      const id = first?.ids[first.at];
      if (first === undefined || id === undefined) break;
      first.at += 1;
      found.push(id);
    }
    return found;
  }

  async #refill(part: Part, after: string): Promise<void> {
    const { ids, reached } = await this.#read(part.shard, after);
    part.ids = ids;
    part.at = 0;
    part.after = reached;
    // This thread also accepts devices and answers operators.
    await yieldToEventLoop();
  }
}

function lowest(parts: readonly Part[]): Part | undefined {
  let lowest: Part | undefined;
  let lowestId: string | undefined;
  for (const part of parts) {
    const id = part.ids[part.at];
    if (id === undefined || (lowestId !== undefined && id >= lowestId)) continue;
    lowest = part;
    lowestId = id;
  }
  return lowest;
}

/** Walks a sorted list of ids. */
class ListWalk implements DeviceWalk {
  readonly #ids: readonly string[];
  #at: number;

  constructor(ids: readonly string[], after: string) {
    this.#ids = ids;
    const first = ids.findIndex((id) => id > after);
    this.#at = first < 0 ? ids.length : first;
  }

  async next(limit: number): Promise<string[]> {
    const found = this.#ids.slice(this.#at, this.#at + limit);
    this.#at += found.length;
    return found;
  }
}

const countPageSize = 1_000;
/** Backoff after a chunk that failed: doubles with each further one. */
const retryMsMin = 1_000;
const retryMsMax = 8_000;

/** In-memory state of a broadcast that has not ended. */
export class ActiveJob {
  readonly key: JobKey;
  readonly fleetId: string;
  readonly id: Buffer;
  readonly job: Job;
  /** Progress as on disk. */
  progress: JobProgress;
  devices: number | undefined;
  /** Settles when the chunk being sent is saved or abandoned. */
  turn: Promise<void> = Promise.resolve();
  /** Same as in `progress`, but set as soon as a chunk is interrupted. */
  partial: Delivered | undefined;
  /** Chunks that failed in a row. */
  failures = 0;
  #isBackingOff = false;
  #walk: DeviceWalk | undefined;
  #holds = 0;
  readonly #changes = new Mutex();

  constructor(key: JobKey, job: Job, progress: JobProgress) {
    this.key = key;
    [this.fleetId, this.id] = key;
    this.job = job;
    this.progress = progress;
    this.partial = progress.partial;
    this.devices = 'listed' in job.to ? job.to.listed : progress.devices;
  }

  get isReady(): boolean {
    return this.progress.state === 'running' && this.#holds === 0 && !this.#isBackingOff;
  }

  /** Is not ready for a while. */
  async backOff(signal: AbortSignal): Promise<void> {
    this.#isBackingOff = true;
    await sleep(Math.min(retryMsMax, retryMsMin * 2 ** this.failures), signal);
    this.failures += 1;
    this.#isBackingOff = false;
  }

  /** Runs changes one at a time, while nothing is sent. */
  async hold<T>(change: () => Promise<T>): Promise<T> {
    this.#holds += 1;
    try {
      return await this.#changes.run(async () => {
        await this.turn;
        return change();
      });
    } finally {
      this.#holds -= 1;
    }
  }

  /** Returns the current walk, or a new one after the saved progress. */
  walk(shards: readonly Shard[], store: JobStore): DeviceWalk {
    this.#walk ??= this.#walkFrom(this.progress.after, shards, store);
    return this.#walk;
  }

  /** Discards the walk, to begin again after the saved progress. */
  rewind(): void {
    this.#walk = undefined;
  }

  /** Counts the target devices page by page, since this thread has other work. */
  async count(shards: readonly Shard[], shouldContinue: () => boolean): Promise<void> {
    let found = 0;
    for (const shard of shards) {
      let after: string | undefined = '';
      while (after !== undefined) {
        if (!shouldContinue()) return;
        const { ids, reached }: IdPage = await this.#read(shard, after, countPageSize);
        found += ids.length;
        after = reached;
        await yieldToEventLoop();
      }
    }
    this.devices ??= found;
  }

  async #read(shard: Shard, after: string, limit = pageSize): Promise<IdPage> {
    const { fleetId, job } = this;
    if (!('tags' in job.to)) {
      const ids = await shard.devices.ids(fleetId, after, limit);
      return { ids, reached: ids.length < limit ? undefined : ids.at(-1) };
    }
    // Positions in the index of a tag are ids.
    const { tags } = job.to;
    const { items, reached } = await shard.devices.find({ fleetId, tags, by: 'tag', after, scanMax: limit });
    return { ids: items.map(({ position }) => position), reached };
  }

  #walkFrom(after: string, shards: readonly Shard[], store: JobStore): DeviceWalk {
    if ('listed' in this.job.to) return new ListWalk(store.targets(this.key), after);
    return new ShardWalk(shards, (shard, from) => this.#read(shard, from), after);
  }
}
