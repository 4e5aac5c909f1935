import { SingleFlight, sleep } from '../../../core/async.ts';
import { ApiError } from '../../../core/errors.ts';
import { FairShare } from '../../../core/fair-share.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import { type Log, logFailure } from '../../../core/telemetry/log.ts';
import type { Fleets } from '../../../declarations/fleet.ts';
import type { BroadcastProgress } from '../../../domain/mail/broadcast.ts';
import type { Shard } from '../../../domain/shard.ts';
import type { BroadcastConfig } from '../config.ts';
import type { BroadcastCounts, BroadcastRequest, BroadcastStatus } from '../service.ts';
import { type BroadcastJournal, fleetIdOfJob } from '../tables.ts';
import { ActiveJob } from './active-job.ts';
import { BroadcastDelivery, MailRate } from './delivery.ts';
import { broadcastStatusOf, type Delivered, isOver, type JobProgress } from './job.ts';
import { JobStore } from './job-store.ts';

/**
 * The broadcasts that are not over. Fleets take turns, and so do those of one fleet: a small one does not wait for a
 * large one, nor one fleet for the hundred broadcasts of another.
 */
class Rota {
  /** Whose turn it is comes first, of fleets and of each one's broadcasts. */
  readonly #fleets = new Map<string, Map<string, ActiveJob>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(fleetId: string, key: Buffer): ActiveJob | undefined {
    return this.#fleets.get(fleetId)?.get(key.toString('hex'));
  }

  add(job: ActiveJob): void {
    const jobs = this.#fleets.get(job.fleetId) ?? new Map<string, ActiveJob>();
    this.#fleets.set(job.fleetId, jobs.set(job.key.toString('hex'), job));
    this.#size += 1;
  }

  remove({ fleetId, key }: ActiveJob): void {
    const jobs = this.#fleets.get(fleetId);
    if (jobs?.delete(key.toString('hex')) !== true) return;
    this.#size -= 1;
    if (jobs.size === 0) this.#fleets.delete(fleetId);
  }

  *all(): Generator<ActiveJob> {
    for (const jobs of this.#fleets.values()) yield* jobs.values();
  }

  /** Whose turn it is of those that can go on. */
  next(): ActiveJob | undefined {
    for (const [fleetId, jobs] of this.#fleets) {
      for (const [name, job] of jobs) {
        if (!job.isReady) continue;
        toEnd(jobs, name, job);
        toEnd(this.#fleets, fleetId, jobs);
        return job;
      }
    }
    return undefined;
  }
}

function toEnd<T>(inTurn: Map<string, T>, name: string, one: T): void {
  inTurn.delete(name);
  inTurn.set(name, one);
}

export interface BroadcasterOptions {
  config: BroadcastConfig;
  journal: BroadcastJournal;
  fleets: Fleets;
  shards: { of(device: DeviceKey): Shard; readonly all: readonly Shard[] };
  /** While one is made, nothing is forgotten that the copy may still need. */
  isBackupRunning(): boolean;
  log: Log;
}

const forgetMs = 5_000;
const upkeepMs = 60_000;
/** Until what could not be stored is tried again. */
const failureMs = 1_000;

/**
 * Sends broadcasts: of each in turn one chunk of devices, in the order of their ids, whose progress is then noted.
 * What a crash makes it send again the shards know, until they are told how far each has come for good.
 */
export class Broadcaster {
  readonly store: JobStore;
  readonly #options: BroadcasterOptions;
  readonly #delivery: BroadcastDelivery;
  readonly #rate: MailRate;
  readonly #jobs = new Rota();
  /** Of what may run or be paused; what is on its way to the disk is among it. */
  readonly #share: FairShare;
  readonly #counts = { queued: 0, mailbox_full: 0, delayed_full: 0, device_not_found: 0, not_stored: 0 };
  readonly #timers: NodeJS.Timeout[];
  readonly #forgetting = new SingleFlight(() => this.#forget().catch(this.#saying('forgetting')));
  readonly #upkeep = new SingleFlight(() => this.#cleanUp().catch(this.#saying('upkeep')));
  /** Of which fleets there may be too many; undefined for all. */
  readonly #upkeepDue = new Set<string | undefined>();
  #isStopping = false;
  #wake: () => void = () => {};
  readonly #running: Promise<void>;

  constructor(options: BroadcasterOptions) {
    this.#options = options;
    this.#share = new FairShare(options.config.broadcastsRunningMax);
    this.store = new JobStore(options.journal, options.config);
    this.#rate = new MailRate(options.config);
    this.#delivery = new BroadcastDelivery({ ...options, rate: this.#rate });
    for (const { key, progress } of this.store.all()) {
      const job = isOver(progress) ? undefined : this.store.job(key);
      if (job === undefined) continue;
      const active = new ActiveJob(key, job, progress);
      this.#share.hold(active.fleetId);
      this.#begin(active);
    }
    this.#running = this.#run();
    this.#timers = [
      setInterval(() => void this.#forgetting.run(), forgetMs),
      setInterval(() => this.#upkeepSoon(), upkeepMs),
    ];
    void this.#forgetting.run();
  }

  get active(): number {
    return this.#jobs.size;
  }

  get counts(): BroadcastCounts {
    return this.#counts;
  }

  job(key: Buffer): ActiveJob | undefined {
    return this.#jobs.get(fleetIdOfJob(key), key);
  }

  /** @throws ApiError limit_reached, unavailable, idempotency_key_reused, invalid_idempotency_key. */
  async put(fleetId: string, request: BroadcastRequest): Promise<{ key: Buffer; isReplay: boolean }> {
    const { broadcastsPerFleetMax } = this.#options.config;
    let isTaken = false;
    let isBegun = false;
    try {
      const { key, isReplay } = await this.store.add(fleetId, request, () => {
        const refusal = this.#take(fleetId);
        isTaken = refusal === undefined;
        return refusal;
      });
      const job = isReplay ? undefined : this.store.job(key);
      const progress = this.store.progress(key);
      isBegun = job !== undefined && progress !== undefined;
      if (job !== undefined && progress !== undefined) this.#begin(new ActiveJob(key, job, progress));
      if (!isReplay && this.store.keysOf(fleetId, broadcastsPerFleetMax + 1).length > broadcastsPerFleetMax) {
        this.#upkeepSoon(fleetId);
      }
      return { key, isReplay };
    } finally {
      if (isTaken && !isBegun) this.#share.release(fleetId);
    }
  }

  /** Answers why the fleet may have no broadcast more; else it is counted as one of it. */
  #take(fleetId: string): ApiError | undefined {
    const { broadcastsPerFleetMax, broadcastsRunningMax } = this.#options.config;
    if (this.#share.usedBy(fleetId) >= broadcastsPerFleetMax) return limitReached('broadcastsPerFleetMax');
    this.#share.max = broadcastsRunningMax;
    return this.#share.take(fleetId) ? undefined : limitReached('broadcastsRunningMax');
  }

  /** Undefined when there is no such broadcast. */
  status(key: Buffer): BroadcastStatus | undefined {
    const active = this.job(key);
    if (active !== undefined) {
      return broadcastStatusOf(key, active.job, { ...active.progress, devices: active.devices });
    }
    const [job, progress] = [this.store.job(key), this.store.progress(key)];
    return job && progress && broadcastStatusOf(key, job, progress);
  }

  /** Nothing is sent of it while this goes on, nor after it unless it runs. */
  async change(active: ActiveJob, state: 'running' | 'paused' | 'cancelled'): Promise<void> {
    await active.hold(async () => {
      const { progress, partial } = active;
      if (isOver(progress)) throw new ApiError('broadcast_ended');
      if (progress.state === state) return;
      // A chunk that is not finished will not be sent again: it counts as far as it went.
      if (state === 'cancelled') {
        await this.#note(active, { state, endedAtMs: Date.now() }, partial);
        this.#end(active);
      } else await this.#note(active, { state });
    });
    this.#wake();
  }

  /** What is under way is given up and sent again after the next start. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#wake();
    await this.#running;
    await this.#forgetting.settled();
    await this.#upkeep.settled();
  }

  #begin(active: ActiveJob): void {
    this.#jobs.add(active);
    if (active.devices === undefined) {
      const mayGoOn = (): boolean => !this.#isStopping && !isOver(active.progress);
      // Not known then, which is no more than a bar without an end.
      active.count(this.#options.shards.all, mayGoOn).catch(() => {});
    }
    this.#wake();
  }

  #end(active: ActiveJob): void {
    this.#jobs.remove(active);
    this.#share.release(active.fleetId);
    void this.#forgetting.run();
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      const active = this.#jobs.next();
      if (active === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      active.turn = this.#sendChunk(active).catch(async (error: unknown) => {
        active.rewind();
        logFailure(this.#options.log, error, 'a broadcast cannot go on now; it will try again');
        await sleep(failureMs);
      });
      await active.turn;
    }
  }

  async #sendChunk(active: ActiveJob): Promise<void> {
    const { shards } = this.#options;
    const deviceIds = await active.walk(shards.all, this.store).next(this.#rate.chunkSize);
    const last = deviceIds.at(-1);
    if (last === undefined) {
      const { queued, refused } = active.progress;
      active.devices = queued + refused;
      await this.#note(active, { state: 'done', endedAtMs: Date.now() });
      this.#end(active);
      return;
    }
    const mayGoOn = (): boolean => active.isReady && !this.#isStopping;
    const delivered = await this.#delivery.send(active.fleetId, active.id, active.job, deviceIds, mayGoOn);
    if (!delivered.isWhole) {
      active.partial = mostProgress(delivered, active.partial);
      active.rewind();
      return;
    }
    await this.#note(active, { after: last }, delivered);
    void this.#forgetting.run();
  }

  async #note(active: ActiveJob, change: Partial<JobProgress>, delivered?: Delivered): Promise<void> {
    const { queued = 0, refused = [] } = delivered ?? {};
    const { progress } = active;
    const partial = delivered === undefined ? active.partial : undefined;
    const next = {
      ...progress,
      ...change,
      devices: active.devices,
      queued: progress.queued + queued,
      refused: progress.refused + refused.length,
      partial,
    };
    const room = Math.max(0, this.#options.config.broadcastRefusalsMax - progress.refused);
    await this.store.note(active.key, next, (partial?.refused ?? refused).slice(0, room));
    active.progress = next;
    active.partial = partial;
    this.#counts.queued += queued;
    for (const { reason } of refused) this.#counts[reason] += 1;
  }

  /**
   * Has the shards forget who had mail that is noted by now. Not while a backup is made: it copies what is noted
   * first, so the copies of the shards must know what was sent since.
   */
  async #forget(): Promise<void> {
    for (const shard of this.#options.shards.all) {
      let forgotten: number;
      do {
        if (this.#isStopping || this.#options.isBackupRunning()) return;
        forgotten = await shard.pruneBroadcasts(this.#noted());
      } while (forgotten > 0);
    }
  }

  #noted(): BroadcastProgress[] {
    return [...this.#jobs.all()].map(({ id, fleetId, progress }) => ({
      broadcast: id,
      after: fleetId + progress.after,
    }));
  }

  #saying(what: string): (error: unknown) => void {
    return (error) => logFailure(this.#options.log, error, `broadcasts: ${what} failed`);
  }

  /** Of one fleet, or of all. */
  #upkeepSoon(fleetId?: string): void {
    this.#upkeepDue.add(fleetId);
    void this.#upkeep.run();
  }

  async #cleanUp(): Promise<void> {
    await this.store.expireKeys();
    // With those that are added meanwhile.
    for (const fleetId of this.#upkeepDue) {
      this.#upkeepDue.delete(fleetId);
      for await (const keys of this.store.expiredJobs(fleetId)) {
        for (const key of keys) if (!this.#isStopping) await this.store.remove(key);
        if (this.#isStopping) return;
      }
    }
  }
}

/** Of two attempts at one chunk: the shards know what either has sent. */
function mostProgress(one: Delivered, other: Delivered | undefined): Delivered {
  const done = ({ queued, refused }: Delivered): number => queued + refused.length;
  return other !== undefined && done(other) > done(one) ? other : one;
}

function limitReached(key: 'broadcastsRunningMax' | 'broadcastsPerFleetMax'): ApiError {
  return new ApiError('limit_reached', {
    msg: `There are too many broadcasts that run or are paused, of this fleet or of all (${key}).`,
  });
}
