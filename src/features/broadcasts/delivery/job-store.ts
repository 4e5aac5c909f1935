import { yieldToEventLoop } from '../../../core/async.ts';
import { ApiError, unavailable } from '../../../core/errors.ts';
import { generateUuid } from '../../../core/uuid.ts';
import { keyRefused } from '../../../domain/idempotency-key.ts';
import type { Page } from '../../../domain/shard.ts';
import { IdempotencyKeys } from '../../../storage/lmdb/environment/idempotency-keys.ts';
import type { BroadcastConfig } from '../config.ts';
import type { BroadcastRefusalCount, BroadcastRequest, RefusalReason } from '../service.ts';
import {
  type BroadcastJournal,
  deviceIdLength,
  fleetIdOfJob,
  jobKey,
  jobKeyBytes,
  keysUnder,
  refusalKey,
} from '../tables.ts';
import {
  decodeJob,
  decodeProgress,
  decodeTargets,
  encodeJob,
  encodeProgress,
  encodeTargets,
  initialProgress,
  type Job,
  type JobProgress,
  jobOf,
} from './job.ts';

/** Rows removed per transaction: this thread has other work. */
const removedMax = 1_000;
/** Broadcasts whose progress is read per event loop turn: about a millisecond. */
const walkedMax = 256;

/** Broadcasts on disk. */
export class JobStore {
  readonly #journal: BroadcastJournal;
  readonly #config: BroadcastConfig;
  readonly #keys: IdempotencyKeys;

  constructor(journal: BroadcastJournal, config: BroadcastConfig) {
    this.#journal = journal;
    this.#config = config;
    this.#keys = new IdempotencyKeys(journal.tables.senderKeys, journal.tables.jobTimes, config);
  }

  /**
   * Returns its key, and whether it is a replay. `refusalOf` is called before a new one is added, never for a replay.
   * @throws ApiError
   */
  async add(
    fleetId: string,
    request: BroadcastRequest,
    refusalOf: () => ApiError | undefined,
  ): Promise<{ key: Buffer; isReplay: boolean }> {
    if (!this.#journal.mayGrow()) {
      throw unavailable('The store of broadcasts is full (diskFreeBytesMin, mapBytesMax). Retry later.', 5);
    }
    const { to, idempotency } = request;
    const id = generateUuid();
    const key = jobKey(fleetId, id);
    let known: ReturnType<IdempotencyKeys['find']>;
    let refusal: ApiError | undefined;
    await this.#journal.commit(() => {
      const { jobs, jobProgress, jobTargets } = this.#journal.tables;
      known = idempotency && this.#keys.find(fleetId, idempotency.key, idempotency.digest);
      if (known !== undefined) return;
      refusal = refusalOf();
      // Not thrown here, as others share the transaction.
      if (refusal !== undefined) return;
      if (idempotency) this.#keys.remember(fleetId, idempotency.key, idempotency.digest, id);
      jobs.putSync(key, encodeJob(jobOf(request, Date.now())));
      jobProgress.putSync(key, encodeProgress(initialProgress));
      if ('devices' in to) jobTargets.putSync(key, encodeTargets(to.devices));
    });
    if (refusal !== undefined) throw refusal;
    if (known === undefined) return { key, isReplay: false };
    if (typeof known === 'string') throw keyRefused(known);
    const before = jobKey(fleetId, known);
    // Deleted since, or removed for newer ones.
    if (this.progress(before) === undefined) throw new ApiError('broadcast_not_found');
    return { key: before, isReplay: true };
  }

  job(key: Buffer): Job | undefined {
    this.#journal.refresh();
    const value = this.#journal.tables.jobs.getBinary(key);
    return value && decodeJob(value);
  }

  progress(key: Buffer): JobProgress | undefined {
    this.#journal.refresh();
    const value = this.#journal.tables.jobProgress.getBinary(key);
    return value && decodeProgress(value);
  }

  /** Reads the ids of a list, sorted. */
  targets(key: Buffer): string[] {
    this.#journal.refresh();
    const value = this.#journal.tables.jobTargets.getBinary(key);
    return value === undefined ? [] : decodeTargets(value);
  }

  /** Saves progress and refusals atomically; settles once durable. */
  async save(
    key: Buffer,
    progress: JobProgress,
    refused: readonly BroadcastRefusalCount[] = [],
  ): Promise<void> {
    await this.#journal.commit(() => {
      const { jobProgress, jobRefusals } = this.#journal.tables;
      jobProgress.putSync(key, encodeProgress(progress));
      for (const { deviceId, reason } of refused) {
        jobRefusals.putSync(refusalKey(key, deviceId), Buffer.from(reason));
      }
    });
  }

  /** Yields all broadcasts, by fleet and then in the order they were put. */
  *all(): Generator<{ key: Buffer; progress: JobProgress }> {
    this.#journal.refresh();
    for (const { key, value } of this.#journal.tables.jobProgress.getRange({})) {
      yield { key, progress: decodeProgress(value) };
    }
  }

  /** Keys of a fleet's broadcasts in the order they were put. */
  keysOf(fleetId: string, limit: number): Buffer[] {
    this.#journal.refresh();
    const [start, end] = [Buffer.from(fleetId), Buffer.from(`${fleetId}~`)];
    return [...this.#journal.tables.jobs.getKeys({ start, end, limit })];
  }

  /** Keys of a fleet's broadcasts, newest first, older than `before`. */
  newest(
    fleetId: string,
    before: Uint8Array | undefined,
    limit: number,
  ): { keys: Buffer[]; hasMore: boolean } {
    this.#journal.refresh();
    const start = before === undefined ? Buffer.from(`${fleetId}~`) : jobKey(fleetId, before);
    const end = Buffer.from(fleetId);
    const keys = [...this.#journal.tables.jobs.getKeys({ start, end, reverse: true, limit: limit + 2 })];
    const found = keys.filter((key) => !key.equals(start) && key.length === jobKeyBytes);
    return { keys: found.slice(0, limit), hasMore: found.length > limit };
  }

  refusals(key: Buffer, after: string, limit: number): Page<BroadcastRefusalCount> {
    this.#journal.refresh();
    const { jobRefusals } = this.#journal.tables;
    const keys = keysUnder(jobRefusals, key, { after, limit: limit + 1 });
    const items = keys.slice(0, limit).map((entry) => ({
      deviceId: entry.toString('latin1', jobKeyBytes, jobKeyBytes + deviceIdLength),
      reason: (jobRefusals.getBinary(entry)?.toString() ?? 'not_stored') as RefusalReason,
    }));
    return { items, next: keys.length > limit ? (items.at(-1)?.deviceId ?? null) : null };
  }

  /** Removes an ended broadcast; the rows by which it is found last, so that a crash leaves no orphans. */
  async remove(key: Buffer): Promise<void> {
    const { jobs, jobProgress, jobTargets, jobRefusals } = this.#journal.tables;
    let removed: number;
    do {
      removed = 0;
      await this.#journal.commit(() => {
        const keys = keysUnder(jobRefusals, key, { limit: removedMax });
        for (const entry of keys) jobRefusals.removeSync(entry);
        removed = keys.length;
      });
    } while (removed === removedMax);
    await this.#journal.commit(() => {
      for (const table of [jobTargets, jobs, jobProgress]) table.removeSync(key);
    });
  }

  /** Removes idempotency keys that are out of the window. */
  async expireKeys(): Promise<void> {
    this.#journal.refresh();
    let expired: number;
    do {
      expired = 0;
      try {
        const [oldest] = [...this.#journal.tables.senderKeys.getKeys({ limit: 1 })];
        if (oldest === undefined) return;
        await this.#journal.commit(() => {
          expired = this.#keys.expire(Date.now(), removedMax);
        });
      } catch (error) {
        this.#keys.rollback();
        throw error;
      }
    } while (expired === removedMax);
  }

  /**
   * Yields the keys of ended broadcasts that are past their retention or too many of their fleet: for one fleet or,
   * without one, fleet by fleet.
   */
  async *expiredJobs(fleetId?: string): AsyncGenerator<Buffer[]> {
    let jobsOfFleet: { key: Buffer; endedAtMs: number | undefined }[] = [];
    for await (const { key, progress } of this.#walk(fleetId)) {
      const [first] = jobsOfFleet;
      if (first !== undefined && fleetIdOfJob(first.key) !== fleetIdOfJob(key)) {
        yield this.#expiredOf(jobsOfFleet);
        jobsOfFleet = [];
      }
      jobsOfFleet.push({ key, endedAtMs: progress.endedAtMs });
    }
    yield this.#expiredOf(jobsOfFleet);
  }

  #expiredOf(jobsOfFleet: readonly { key: Buffer; endedAtMs: number | undefined }[]): Buffer[] {
    const { broadcastsPerFleetMax, broadcastRetentionSeconds } = this.#config;
    const oldestMs = Date.now() - broadcastRetentionSeconds * 1_000;
    const ended = jobsOfFleet.flatMap(({ key, endedAtMs }) =>
      endedAtMs === undefined ? [] : [{ key, endedAtMs }],
    );
    ended.sort((a, b) => a.endedAtMs - b.endedAtMs);
    const tooMany = jobsOfFleet.length - broadcastsPerFleetMax;
    return ended
      .filter(({ endedAtMs }, index) => index < tooMany || endedAtMs < oldestMs)
      .map(({ key }) => key);
  }

  /** Yields in key order, a few per event loop turn, as there may be many. */
  async *#walk(fleetId = ''): AsyncGenerator<{ key: Buffer; progress: JobProgress }> {
    let start = Buffer.from(fleetId, 'latin1');
    const end = Buffer.from(`${fleetId}~`, 'latin1');
    for (;;) {
      this.#journal.refresh();
      const page: { key: Buffer; progress: JobProgress }[] = [];
      for (const { key, value } of this.#journal.tables.jobProgress.getRange({
        start,
        end,
        limit: walkedMax,
      })) {
        page.push({ key, progress: decodeProgress(value) });
      }
      yield* page;
      const last = page.at(-1);
      if (last === undefined || page.length < walkedMax) return;
      start = Buffer.concat([last.key, Buffer.alloc(1)]);
      await yieldToEventLoop();
    }
  }
}
