import { SingleFlight } from '../../../core/async.ts';
import { ApiError } from '../../../core/errors.ts';
import { FairShare } from '../../../core/fair-share.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import { type Log, logFailure } from '../../../core/telemetry/log.ts';
import type { Fleets } from '../../../declarations/fleet.ts';
import type { Hold } from '../../../domain/hold.ts';
import type { MarkedBroadcast } from '../../../domain/mail/broadcast.ts';
import type { Shard } from '../../../domain/shard.ts';
import { sweepRecordsMax } from '../../../domain/write.ts';
import type { Journal } from '../../../storage/tables/journal.ts';
import type { BroadcastCounts, BroadcastRequest, BroadcastStatus } from '../broadcast-service.ts';
import type { BroadcastConfig } from '../config.ts';
import type { JobKey } from '../tables.ts';
import { ActiveJob } from './active-job.ts';
import { BroadcastDelivery, MailRate } from './delivery.ts';
import { broadcastStatusOf, type Delivered, isEnded, type JobProgress, withReasons } from './job.ts';
import { JobStore } from './job-store.ts';

/**
 * Schedules active broadcasts round robin over fleets, and over the broadcasts of each fleet, so that a small one does
 * not wait for a large one, nor one fleet for the hundred broadcasts of another.
 */
class RoundRobin {
  /** Fleets, and the broadcasts of each, in order of turns: the next one first. */
  readonly #fleets = new Map<string, Map<string, ActiveJob>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get([fleetId, id]: JobKey): ActiveJob | undefined {
    return this.#fleets.get(fleetId)?.get(id.toString('hex'));
  }

  add(job: ActiveJob): void {
    const jobs = this.#fleets.get(job.fleetId) ?? new Map<string, ActiveJob>();
    this.#fleets.set(job.fleetId, jobs.set(job.id.toString('hex'), job));
    this.#size += 1;
  }

  remove({ fleetId, id }: ActiveJob): void {
    const jobs = this.#fleets.get(fleetId);
    if (jobs?.delete(id.toString('hex')) !== true) return;
    this.#size -= 1;
    if (jobs.size === 0) this.#fleets.delete(fleetId);
  }

  *all(): Generator<ActiveJob> {
    for (const jobs of this.#fleets.values()) yield* jobs.values();
  }

  /** Returns the next broadcast that is ready. */
  next(): ActiveJob | undefined {
    for (const [fleetId, jobs] of this.#fleets) {
      for (const [name, job] of jobs) {
        if (!job.isReady) continue;
        moveToEnd(jobs, name, job);
        moveToEnd(this.#fleets, fleetId, jobs);
        return job;
      }
    }
    return undefined;
  }
}

function moveToEnd<T>(queue: Map<string, T>, name: string, one: T): void {
  queue.delete(name);
  queue.set(name, one);
}

export interface BroadcasterOptions {
  config: BroadcastConfig;
  journal: Journal;
  fleets: Fleets;
  shards: { of(device: DeviceKey): Shard; readonly all: readonly Shard[] };
  hold: Hold;
  /** During a backup nothing is pruned that the copy may still need. */
  isBackupRunning(): boolean;
  log: Log;
}

const upkeepMs = 60_000;
/** Broadcasts looked up per read of a shard. */
const prunedPageMax = 100;

/**
 * Sends broadcasts in turns, one chunk of devices by id at a time, and saves the progress after each. The shards
 * remember who had the mail while the broadcast is retained, and so drop what a crash makes it send again.
 */
export class Broadcaster {
  readonly store: JobStore;
  readonly #options: BroadcasterOptions;
  readonly #delivery: BroadcastDelivery;
  readonly #rate: MailRate;
  readonly #jobs = new RoundRobin();
  /** Share of running and paused broadcasts, including those being stored. */
  readonly #share = new FairShare(0);
  readonly #counts = {
    queued: 0,
    mailbox_full: 0,
    delayed_full: 0,
    fleet_mail_full: 0,
    device_not_found: 0,
    not_stored: 0,
  };
  readonly #timers: NodeJS.Timeout[];
  readonly #pruning = new SingleFlight(() => this.#prune().catch(this.#logging('pruning')));
  readonly #upkeep = new SingleFlight(() => this.#cleanUp().catch(this.#logging('upkeep')));
  /** Fleets that may have too many broadcasts; undefined for all fleets. */
  readonly #upkeepDue = new Set<string | undefined>();
  readonly #stopping = new AbortController();
  #wake: () => void = () => {};
  readonly #running: Promise<void>;

  constructor(options: BroadcasterOptions) {
    this.#options = options;
    this.store = new JobStore(options.journal, options.config);
    this.#rate = new MailRate(options.config);
    this.#delivery = new BroadcastDelivery({ ...options, rate: this.#rate });
    for (const [key, progress] of this.store.all()) {
      const job = isEnded(progress) ? undefined : this.store.job(key);
      if (job === undefined) continue;
      const active = new ActiveJob(key, job, progress);
      this.#share.hold(active.fleetId);
      this.#start(active);
    }
    this.#running = this.#run();
    this.#timers = [setInterval(() => this.#upkeepSoon(), upkeepMs)];
    this.#upkeepSoon();
  }

  get active(): number {
    return this.#jobs.size;
  }

  get counts(): BroadcastCounts {
    return this.#counts;
  }

  job(key: JobKey): ActiveJob | undefined {
    return this.#jobs.get(key);
  }

  /** @throws ApiError limit_reached, unavailable, idempotency_key_reused, invalid_idempotency_key. */
  async put(fleetId: string, request: BroadcastRequest): Promise<{ key: JobKey; isReplay: boolean }> {
    const { broadcastsPerFleetMax } = this.#options.config.settings.current;
    let isTaken = false;
    let isStarted = false;
    try {
      const { key, isReplay } = await this.store.add(fleetId, request, () => {
        const refusal = this.#take(fleetId);
        isTaken = refusal === undefined;
        return refusal;
      });
      const job = isReplay ? undefined : this.store.job(key);
      const progress = this.store.progress(key);
      isStarted = job !== undefined && progress !== undefined;
      if (job !== undefined && progress !== undefined) this.#start(new ActiveJob(key, job, progress));
      if (!isReplay && this.store.keysOf(fleetId, broadcastsPerFleetMax + 1).length > broadcastsPerFleetMax) {
        this.#upkeepSoon(fleetId);
      }
      return { key, isReplay };
    } finally {
      if (isTaken && !isStarted) this.#share.release(fleetId);
    }
  }

  /** Takes a share for one more broadcast, or returns why the fleet may not have it. */
  #take(fleetId: string): ApiError | undefined {
    const { broadcastsPerFleetMax, broadcastsRunningMax } = this.#options.config.settings.current;
    if (this.#share.usedBy(fleetId) >= broadcastsPerFleetMax) return limitReached('broadcastsPerFleetMax');
    this.#share.max = broadcastsRunningMax;
    return this.#share.take(fleetId) ? undefined : limitReached('broadcastsRunningMax');
  }

  /** Returns undefined for an unknown broadcast. */
  status(key: JobKey): BroadcastStatus | undefined {
    const active = this.job(key);
    if (active !== undefined) {
      return broadcastStatusOf(key[1], active.job, { ...active.progress, devices: active.devices });
    }
    const [job, progress] = [this.store.job(key), this.store.progress(key)];
    return job && progress && broadcastStatusOf(key[1], job, progress);
  }

  /** Sends nothing during the change, nor after it unless the broadcast is running. */
  async change(active: ActiveJob, state: 'running' | 'paused' | 'cancelled'): Promise<void> {
    await active.hold(async () => {
      const { progress, partial } = active;
      if (isEnded(progress)) throw new ApiError('broadcast_ended');
      if (progress.state === state) return;
      // An interrupted chunk will not be sent again: count what it has sent.
      if (state === 'cancelled') {
        await this.#save(active, { state, endedAtMs: Date.now() }, partial);
        this.#end(active);
      } else await this.#save(active, { state });
    });
    this.#wake();
  }

  /** Abandons the current chunk, which is sent again after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const timer of this.#timers) clearInterval(timer);
    this.#wake();
    await this.#running;
    await this.#pruning.settled();
    await this.#upkeep.settled();
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  #start(active: ActiveJob): void {
    this.#jobs.add(active);
    if (active.devices === undefined) {
      const shouldContinue = (): boolean => !this.#isStopping && !isEnded(active.progress);
      // On failure the total stays unknown, which only costs a progress bar its end.
      active.count(this.#options.shards.all, shouldContinue).catch(() => {});
    }
    this.#wake();
  }

  #end(active: ActiveJob): void {
    this.#jobs.remove(active);
    this.#share.release(active.fleetId);
  }

  async #run(): Promise<void> {
    for (;;) {
      await this.#options.hold.released(this.#stopping.signal);
      if (this.#isStopping) return;
      const active = this.#jobs.next();
      if (active === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      active.turn = this.#sendChunk(active).catch((error: unknown) => {
        active.rewind();
        logFailure(this.#options.log, error, 'broadcast delivery failed; retrying');
        this.#backOff(active);
      });
      await active.turn;
    }
  }

  /** Leaves its turns to the others for a while. */
  #backOff(active: ActiveJob): void {
    void active.backOff(this.#stopping.signal).then(() => this.#wake());
  }

  async #sendChunk(active: ActiveJob): Promise<void> {
    const { shards, hold } = this.#options;
    const { pauseAfter = 0 } = active.job.request;
    const firstLeft = pauseAfter - active.progress.queued - active.progress.refused;
    const limit = firstLeft > 0 ? Math.min(this.#rate.chunkSize, firstLeft) : this.#rate.chunkSize;
    const { ids, isEnd } = await active.walk(shards.all, this.store).next(limit);
    const last = ids.at(-1);
    // None of those that were looked at match: it is the turn of others.
    if (last === undefined && !isEnd) return;
    if (last === undefined) {
      const { queued, refused } = active.progress;
      active.devices = queued + refused;
      await this.#save(active, { state: 'done', endedAtMs: Date.now() });
      this.#end(active);
      return;
    }
    const shouldContinue = (): boolean => active.isReady && !hold.isHeld && !this.#isStopping;
    const delivered = await this.#delivery.send(active.fleetId, active.id, active.job, ids, shouldContinue);
    if (!delivered.isWhole) {
      active.partial = mostProgress(delivered, active.partial);
      active.rewind();
      if (shouldContinue()) this.#backOff(active);
      return;
    }
    const isFirstDone = firstLeft > 0 && ids.length === firstLeft && !isEnd;
    await this.#save(active, { after: last, ...(isFirstDone && { state: 'paused' as const }) }, delivered);
    active.failures = 0;
  }

  async #save(active: ActiveJob, change: Partial<JobProgress>, delivered?: Delivered): Promise<void> {
    const { queued = 0, refused = [] } = delivered ?? {};
    const { progress } = active;
    const partial = delivered === undefined ? active.partial : undefined;
    const next = {
      ...progress,
      ...change,
      devices: active.devices,
      queued: progress.queued + queued,
      refused: progress.refused + refused.length,
      reasons: withReasons(progress.reasons, refused),
      partial,
    };
    const refusalsLeft = Math.max(
      0,
      this.#options.config.settings.current.broadcastRefusalsMax - progress.refused,
    );
    await this.store.save(active.key, next, (partial?.refused ?? refused).slice(0, refusalsLeft));
    active.progress = next;
    active.partial = partial;
    this.#counts.queued += queued;
    for (const { reason } of refused) this.#counts[reason] += 1;
  }

  /**
   * Lets the shards forget who had the mail of broadcasts that are no longer retained. Not during a backup, which
   * copies the progress first: the copies of the shards must know what was sent since.
   */
  async #prune(): Promise<void> {
    for (const { dedupe } of this.#options.shards.all) {
      let page: MarkedBroadcast[];
      let after: Buffer | undefined;
      do {
        page = await dedupe.broadcasts(after, prunedPageMax);
        for (const { fleetId, id } of page) {
          if (this.store.progress([fleetId, id]) !== undefined) continue;
          do {
            if (this.#isStopping || this.#options.isBackupRunning()) return;
          } while ((await dedupe.forgetBroadcast(id)) === sweepRecordsMax);
        }
        after = page.at(-1)?.id;
      } while (page.length === prunedPageMax);
    }
  }

  #logging(what: string): (error: unknown) => void {
    return (error) => logFailure(this.#options.log, error, `broadcasts: ${what} failed`);
  }

  /** Schedules upkeep of one fleet, or of all. */
  #upkeepSoon(fleetId?: string): void {
    this.#upkeepDue.add(fleetId);
    void this.#upkeep.run();
  }

  async #cleanUp(): Promise<void> {
    await this.store.expireKeys();
    // Includes fleets added meanwhile.
    for (const fleetId of this.#upkeepDue) {
      this.#upkeepDue.delete(fleetId);
      for await (const keys of this.store.expiredJobs(fleetId)) {
        for (const key of keys) if (!this.#isStopping) await this.store.remove(key);
        if (this.#isStopping) return;
      }
    }
    await this.#pruning.run();
  }
}

/** Picks the attempt at a chunk that got further; the shards know what either has sent. */
function mostProgress(one: Delivered, other: Delivered | undefined): Delivered {
  const done = ({ queued, refused }: Delivered): number => queued + refused.length;
  return other !== undefined && done(other) > done(one) ? other : one;
}

function limitReached(key: 'broadcastsRunningMax' | 'broadcastsPerFleetMax'): ApiError {
  return new ApiError('limit_reached', {
    msg: `Too many running or paused broadcasts, of this fleet or of all (${key}). Retry once some have ended.`,
  });
}
