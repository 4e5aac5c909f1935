import { Mutex, sleep, yieldToEventLoop } from '../../../core/async.ts';
import type { DeviceFilter } from '../../../domain/devices/device-query.ts';
import type { Shard } from '../../../domain/shard.ts';
import type { JobKey } from '../tables.ts';
import type { Delivered, Job, JobProgress } from './job.ts';
import type { JobStore } from './job-store.ts';

/** Walks devices by id over all shards, so that the order does not depend on the number of shards. */
interface DeviceWalk {
  /**
   * Returns the next ids, up to `limit`. Looks at a bounded number of devices: there may be none, and still more to
   * come.
   */
  next(limit: number): Promise<{ ids: string[]; isEnd: boolean }>;
}

/** Devices per read of one shard: a millisecond or two of this thread. */
const pageSize = 256;
/** Reads of one step of a walk: other broadcasts wait for it, and whoever pauses this one. */
const readsPerStepMax = 64;

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

  async next(limit: number): Promise<{ ids: string[]; isEnd: boolean }> {
    const ids: string[] = [];
    let reads = 0;
    while (ids.length < limit) {
      for (const part of this.#parts) {
        while (part.at === part.ids.length && part.after !== undefined) {
          if (reads === readsPerStepMax) return { ids, isEnd: false };
          reads += 1;
          await this.#refill(part, part.after);
        }
      }
      const first = lowest(this.#parts);
      const id = first?.ids[first.at];
      if (first === undefined || id === undefined) return { ids, isEnd: true };
      first.at += 1;
      ids.push(id);
    }
    return { ids, isEnd: false };
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

  async next(limit: number): Promise<{ ids: string[]; isEnd: boolean }> {
    const ids = this.#ids.slice(this.#at, this.#at + limit);
    this.#at += ids.length;
    return { ids, isEnd: this.#at === this.#ids.length };
  }
}

/** The best of the indexes whose positions are ids; undefined: there is nothing to match. */
function idIndexOf({ fleetId: _, ...conditions }: DeviceFilter): 'id' | 'tag' | 'disabled' | undefined {
  if (Object.keys(conditions).length === 0) return undefined;
  if (conditions.tags !== undefined) return 'tag';
  return conditions.enabled === false ? 'disabled' : 'id';
}

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
        const { ids, reached }: IdPage = await this.#read(shard, after);
        found += ids.length;
        after = reached;
        await yieldToEventLoop();
      }
    }
    this.devices ??= found;
  }

  async #read(shard: Shard, after: string): Promise<IdPage> {
    const { fleetId, job } = this;
    const filter: DeviceFilter = 'filter' in job.to ? job.to.filter : { fleetId };
    const by = idIndexOf(filter);
    if (by === undefined) {
      const ids = await shard.devices.ids(fleetId, after, pageSize);
      return { ids, reached: ids.length < pageSize ? undefined : ids.at(-1) };
    }
    const { items, reached } = await shard.devices.find({ ...filter, by, after, scanMax: pageSize });
    return { ids: items.map(({ position }) => position), reached };
  }

  #walkFrom(after: string, shards: readonly Shard[], store: JobStore): DeviceWalk {
    if ('listed' in this.job.to) return new ListWalk(store.targets(this.key), after);
    return new ShardWalk(shards, (shard, from) => this.#read(shard, from), after);
  }
}
