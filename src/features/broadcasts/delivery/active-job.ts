import { Mutex, yieldToEventLoop } from '../../../core/async.ts';
import type { Shard } from '../../../domain/shard.ts';
import { fleetIdOfJob, idOfJob } from '../tables.ts';
import type { Delivered, Job, JobProgress } from './job.ts';
import type { JobStore } from './job-store.ts';
import { type DeviceWalk, ListWalk, ShardWalk } from './walk.ts';

const countPageSize = 1_000;

/** A broadcast that is not over: what is known of it in memory. */
export class ActiveJob {
  readonly key: Buffer;
  readonly fleetId: string;
  readonly id: Uint8Array;
  readonly job: Job;
  /** As it is on disk. */
  progress: JobProgress;
  devices: number | undefined;
  /** Settles when what is being sent of it is noted, or given up. */
  turn: Promise<void> = Promise.resolve();
  /** As in its progress, from the moment that the chunk is cut short. */
  partial: Delivered | undefined;
  #walk: DeviceWalk | undefined;
  #holds = 0;
  readonly #changes = new Mutex();

  constructor(key: Buffer, job: Job, progress: JobProgress) {
    this.key = key;
    this.fleetId = fleetIdOfJob(key);
    this.id = idOfJob(key);
    this.job = job;
    this.progress = progress;
    this.partial = progress.partial;
    this.devices = 'listed' in job.to ? job.to.listed : progress.devices;
  }

  get isReady(): boolean {
    return this.progress.state === 'running' && this.#holds === 0;
  }

  /** Runs `change` while nothing is sent, one after another. */
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

  /** From behind what is noted; as far as it was walked before, where that went well. */
  walk(shards: readonly Shard[], store: JobStore): DeviceWalk {
    this.#walk ??= this.#walkFrom(this.progress.after, shards, store);
    return this.#walk;
  }

  /** What was walked is not noted: begin again behind what is. */
  rewind(): void {
    this.#walk = undefined;
  }

  /** How many devices there are to send to. Page by page, since this thread has other things to do. */
  async count(shards: readonly Shard[], mayGoOn: () => boolean): Promise<void> {
    let found = 0;
    for (const shard of shards) {
      let after = '';
      let ids: string[];
      do {
        if (!mayGoOn()) return;
        ids = await this.#read(shard, after, countPageSize);
        found += ids.length;
        after = ids.at(-1) ?? after;
        await yieldToEventLoop();
      } while (ids.length === countPageSize);
    }
    this.devices ??= found;
  }

  async #read(shard: Shard, after: string, limit: number): Promise<string[]> {
    const { to } = this.job;
    return 'tag' in to
      ? shard.devicesWithTag(this.fleetId, to.tag, after, limit)
      : shard.deviceIds(this.fleetId, after, limit);
  }

  #walkFrom(after: string, shards: readonly Shard[], store: JobStore): DeviceWalk {
    if ('listed' in this.job.to) return new ListWalk(store.targets(this.key), after);
    return new ShardWalk(shards, (shard, from, limit) => this.#read(shard, from, limit), after);
  }
}
