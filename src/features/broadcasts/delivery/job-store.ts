import { yieldToEventLoop } from '../../../core/async.ts';
import { ApiError, unavailable } from '../../../core/errors.ts';
import { copyUuid, generateUuid } from '../../../core/uuid.ts';
import { keyRefused } from '../../../domain/idempotency-key.ts';
import type { Page } from '../../../domain/page.ts';
import { Collection } from '../../../storage/tables/collection.ts';
import { IdempotencyKeys } from '../../../storage/tables/idempotency-keys.ts';
import type { Journal } from '../../../storage/tables/journal.ts';
import type { BroadcastRefusalCount, BroadcastRequest, RefusalReason } from '../broadcast-service.ts';
import type { BroadcastConfig } from '../config.ts';
import { type JobKey, jobProgressTable, jobTable, refusalTable, targetTable } from '../tables.ts';
import { initialProgress, type Job, type JobProgress, jobOf } from './job.ts';

/** Rows removed per transaction: this thread has other work. */
const removedMax = 1_000;
/** Broadcasts whose progress is read per event loop turn: about a millisecond. */
const walkedMax = 256;

/** Broadcasts on disk. */
export class JobStore {
  readonly #journal: Journal;
  readonly #config: BroadcastConfig;
  readonly #jobs: Collection<JobKey, Job>;
  readonly #progress: Collection<JobKey, JobProgress>;
  readonly #targets: Collection<JobKey, readonly string[]>;
  readonly #refusals: Collection<[...JobKey, string], RefusalReason>;
  readonly #keys: IdempotencyKeys;

  constructor(journal: Journal, config: BroadcastConfig) {
    this.#journal = journal;
    this.#config = config;
    this.#jobs = new Collection(journal, jobTable);
    this.#progress = new Collection(journal, jobProgressTable);
    this.#targets = new Collection(journal, targetTable);
    this.#refusals = new Collection(journal, refusalTable);
    this.#keys = new IdempotencyKeys(journal.rows('senderKeys'), journal.rows('jobTimes'), config);
  }

  /**
   * Returns its key, and whether it is a replay. `refusalOf` is called before a new one is added, never for a replay.
   * @throws ApiError
   */
  async add(
    fleetId: string,
    request: BroadcastRequest,
    refusalOf: () => ApiError | undefined,
  ): Promise<{ key: JobKey; isReplay: boolean }> {
    if (!this.#journal.mayGrow()) {
      throw unavailable('The store of broadcasts is full (diskFreeBytesMin, mapBytesMax). Retry later.', 5);
    }
    const { to, idempotency } = request;
    const id = generateUuid();
    const key: JobKey = [fleetId, id];
    let known: ReturnType<IdempotencyKeys['find']>;
    let refusal: ApiError | undefined;
    await this.#journal.commit(() => {
      known = idempotency && this.#keys.find(fleetId, idempotency.key, idempotency.digest);
      if (known !== undefined) return;
      refusal = refusalOf();
      // Not thrown here, as others share the transaction.
      if (refusal !== undefined) return;
      if (idempotency) this.#keys.remember(fleetId, idempotency.key, idempotency.digest, id);
      this.#jobs.put(key, jobOf(request, Date.now()));
      this.#progress.put(key, initialProgress);
      if ('devices' in to) this.#targets.put(key, to.devices);
    });
    if (refusal !== undefined) throw refusal;
    if (known === undefined) return { key, isReplay: false };
    if (typeof known === 'string') throw keyRefused(known);
    const before: JobKey = [fleetId, copyUuid(known)];
    // Deleted since, or removed for newer ones.
    if (this.progress(before) === undefined) throw new ApiError('broadcast_not_found');
    return { key: before, isReplay: true };
  }

  job(key: JobKey): Job | undefined {
    this.#journal.refresh();
    return this.#jobs.get(key);
  }

  progress(key: JobKey): JobProgress | undefined {
    this.#journal.refresh();
    return this.#progress.get(key);
  }

  /** Reads the ids of a list, sorted. */
  targets(key: JobKey): readonly string[] {
    this.#journal.refresh();
    return this.#targets.get(key) ?? [];
  }

  /** Saves progress and refusals atomically; settles once durable. */
  async save(
    key: JobKey,
    progress: JobProgress,
    refused: readonly BroadcastRefusalCount[] = [],
  ): Promise<void> {
    await this.#journal.commit(() => {
      this.#progress.put(key, progress);
      for (const { deviceId, reason } of refused) this.#refusals.put([...key, deviceId], reason);
    });
  }

  /** All broadcasts, by fleet and then in the order they were put. */
  all(): Generator<[JobKey, JobProgress]> {
    this.#journal.refresh();
    return this.#progress.entries([]);
  }

  /** Keys of a fleet's broadcasts in the order they were put. */
  keysOf(fleetId: string, limit: number): JobKey[] {
    this.#journal.refresh();
    return [...this.#jobs.keys([fleetId], { limit })];
  }

  /** Keys of a fleet's broadcasts, newest first, older than `before`. */
  newest(fleetId: string, before: Buffer | undefined, limit: number): { keys: JobKey[]; hasMore: boolean } {
    this.#journal.refresh();
    const slice = { before: before && ([fleetId, before] satisfies JobKey), reverse: true, limit: limit + 1 };
    const keys = [...this.#jobs.keys([fleetId], slice)];
    return { keys: keys.slice(0, limit), hasMore: keys.length > limit };
  }

  refusals(key: JobKey, after: string, limit: number): Page<BroadcastRefusalCount> {
    this.#journal.refresh();
    const { rows, hasMore } = this.#refusals.list(key, { after: [...key, after], limit });
    const items = rows.map(([[, , deviceId], reason]) => ({ deviceId, reason }));
    return { items, next: hasMore ? (items.at(-1)?.deviceId ?? null) : null };
  }

  /** Removes an ended broadcast; the rows by which it is found last, so that a crash leaves no orphans. */
  async remove(key: JobKey): Promise<void> {
    let removed: number;
    do {
      removed = 0;
      await this.#journal.commit(() => {
        removed = this.#refusals.deletePrefix(key, removedMax);
      });
    } while (removed === removedMax);
    await this.#journal.commit(() => {
      for (const table of [this.#targets, this.#jobs, this.#progress]) table.delete(key);
    });
  }

  /** Removes idempotency keys that are out of the window. */
  async expireKeys(): Promise<void> {
    this.#journal.refresh();
    let expired: number;
    do {
      expired = 0;
      try {
        const [oldest] = [...this.#journal.rows('senderKeys').keys({ limit: 1 })];
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
  async *expiredJobs(fleetId?: string): AsyncGenerator<JobKey[]> {
    let jobsOfFleet: [JobKey, JobProgress][] = [];
    for await (const row of this.#walk(fleetId)) {
      const [first] = jobsOfFleet;
      if (first !== undefined && first[0][0] !== row[0][0]) {
        yield this.#expiredOf(jobsOfFleet);
        jobsOfFleet = [];
      }
      jobsOfFleet.push(row);
    }
    yield this.#expiredOf(jobsOfFleet);
  }

  #expiredOf(jobsOfFleet: readonly [JobKey, JobProgress][]): JobKey[] {
    const { broadcastsPerFleetMax, broadcastRetentionSeconds } = this.#config.settings.current;
    const oldestMs = Date.now() - broadcastRetentionSeconds * 1_000;
    const ended = jobsOfFleet.flatMap(([key, { endedAtMs }]) =>
      endedAtMs === undefined ? [] : [{ key, endedAtMs }],
    );
    ended.sort((a, b) => a.endedAtMs - b.endedAtMs);
    const tooMany = jobsOfFleet.length - broadcastsPerFleetMax;
    return ended
      .filter(({ endedAtMs }, index) => index < tooMany || endedAtMs < oldestMs)
      .map(({ key }) => key);
  }

  /** Yields in key order, a few per event loop turn, as there may be many. */
  async *#walk(fleetId?: string): AsyncGenerator<[JobKey, JobProgress]> {
    let after: JobKey | undefined;
    for (;;) {
      this.#journal.refresh();
      const { rows, hasMore } = this.#progress.list(fleetId === undefined ? [] : [fleetId], {
        after,
        limit: walkedMax,
      });
      yield* rows;
      if (!hasMore) return;
      after = rows.at(-1)?.[0];
      await yieldToEventLoop();
    }
  }
}
