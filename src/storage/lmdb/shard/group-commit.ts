import { ApiError, diskFull, unavailable } from '../../../core/errors.ts';
import { newRequestId } from '../../../core/request-id.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import type { CommitMetrics, CommitRefusal } from '../../../core/telemetry/worker-metrics.ts';
import type { Completion, Effects } from '../../../domain/write.ts';
import { StoreError } from '../../tables/store-error.ts';
import type { DeviceVersions } from '../devices/device-versions.ts';
import type { Environment } from '../environment/environment.ts';
import type { ShardState } from './state.ts';
import { addsRecords, type Write, type WriteAnswer } from './write.ts';

interface Pending {
  write: Write;
  completion: Completion<WriteAnswer>;
  answer: WriteAnswer;
}

/** Bounds one transaction, and what a thread copies for it; the rest waits for the next. */
const batchWritesMax = 4_096;

/**
 * With fewer writes under way than this no commit is delayed: a shard with so little to do favours latency over
 * throughput.
 */
export const busyWrites = 8;

/**
 * How long writes are refused after LMDB refused a commit: so a full disk costs neither CPU nor a log line per
 * request, and freed space is found within this time.
 */
const refusalMs = 1_000;

export interface GroupCommitOptions {
  environment: Environment;
  state: ShardState;
  versions: DeviceVersions;
  /** Writes under way to this shard. The submitter adds each, and the group commit subtracts it. */
  depth: Int32Array<SharedArrayBuffer>;
  metrics: CommitMetrics;
  log: Log;
  /** Minimum time between commits while the shard is busy. */
  commitDelayMilliseconds: number;
  /** Submits other pending writes. */
  collect(): void;
  /** Called after each commit, once its writes are answered: store, answer, announce. */
  onEffects(effects: Effects): void;
}

/**
 * The single writer of a shard. It applies all waiting writes in one transaction, makes it durable, and answers; what
 * arrives meanwhile is the next batch. A lone write on an idle shard starts at once.
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  #queue: Pending[] = [];
  #running: Promise<void> | undefined;
  #lastCommitAtMs = 0;
  /** Until then the store is not tried: for writes that add records, and for any. */
  #growthRefusedUntilMs = 0;
  #allRefusedUntilMs = 0;
  #storeRefuses = false;
  /** Whether a write was refused since one that adds records was accepted. */
  #isRefusing = false;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
  }

  submit(write: Write, completion: Completion<WriteAnswer>): void {
    this.#queue.push({ write, completion, answer: undefined });
    this.#running ??= this.#run();
  }

  /** Settles when all submitted writes are durable or refused. */
  async drain(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // Let the rest of this turn's writes arrive: they are free in the same transaction.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      if (this.#isBusy()) await this.#delayCommit();
      this.#options.collect();
      const batch = this.#queue.splice(0, batchWritesMax);
      await this.#commit(batch);
      Atomics.sub(this.#options.depth, 0, batch.length);
    }
    this.#running = undefined;
  }

  #isBusy(): boolean {
    return Atomics.load(this.#options.depth, 0) >= busyWrites;
  }

  /**
   * Delays a commit on a busy shard, so that writes can join it, like PostgreSQL's commit_delay: a commit costs some
   * hundred microseconds of CPU on three threads, whatever its size.
   */
  async #delayCommit(): Promise<void> {
    const waitMs = this.#lastCommitAtMs + this.#options.commitDelayMilliseconds - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    this.#lastCommitAtMs = performance.now();
  }

  async #commit(queued: Pending[]): Promise<void> {
    const { environment, state, versions, metrics, log, onEffects } = this.#options;
    let batch = this.#withoutRefused(queued);
    while (batch.length > 0) {
      let culprit: Pending | undefined;
      try {
        const appended = state.appendOnly(batch);
        if (appended !== undefined) {
          await environment.append('log', appended.key, appended.value);
          for (const pending of batch) pending.answer = 'stored';
        } else {
          await environment.write(() => {
            for (culprit of batch) culprit.answer = state.apply(culprit.write);
            culprit = undefined;
            state.flush();
          });
        }
      } catch (error) {
        state.rollback();
        batch = this.#withoutCulprit(batch, culprit, error as Error);
        continue;
      }
      if (this.#storeRefuses) log.info('store accepts commits again');
      this.#storeRefuses = false;
      metrics.committed(batch.length);
      if (this.#isRefusing && batch.some(growing)) {
        this.#isRefusing = false;
        metrics.recovered();
      }
      const effects = state.takeEffects();
      for (const device of effects.changed) versions.raise(device);
      for (const { completion, answer } of batch) completion.resolve(answer);
      onEffects(effects);
      return;
    }
  }

  /** Refuses what is not worth trying now: a full shard, or a store that just refused, is not tried. */
  #withoutRefused(batch: Pending[]): Pending[] {
    const now = performance.now();
    if (now < this.#allRefusedUntilMs) return this.#refuse(batch, () => true, storeRefused(), 'store');
    if (now < this.#growthRefusedUntilMs) return this.#refuse(batch, growing, storeRefused(), 'store');
    const { environment } = this.#options;
    if (!environment.hasDisk()) return this.#refuse(batch, () => true, diskFull(), 'disk');
    if (!environment.hasDiskToGrow()) return this.#refuse(batch, growing, diskFull(), 'disk');
    if (!environment.hasMapSpace()) {
      return this.#refuse(batch, growing, unavailable('The shard is full (mapBytesMax).', 30), 'map');
    }
    return batch;
  }

  /**
   * Refuses a write that throws by itself (a poisoned record, a damaged page, a defect) and retries the others. If
   * LMDB refuses, on a full disk say, refuses those that add records and retries the rest, since the pages that it
   * frees may be enough.
   */
  #withoutCulprit(batch: Pending[], culprit: Pending | undefined, error: Error): Pending[] {
    const { metrics, log } = this.#options;
    metrics.failed();
    const isRefusal = error instanceof StoreError && !error.isDamage;
    if (culprit !== undefined && !isRefusal) {
      const requestId = newRequestId();
      log.error(
        { err: error, request_id: requestId, write: culprit.write.type },
        'write failed and was rolled back',
      );
      culprit.completion.reject(new ApiError('internal_error', { requestId }));
      return batch.filter((pending) => pending !== culprit);
    }
    if (!this.#storeRefuses)
      log.error({ err: error }, 'store refuses commits; none of their writes are stored');
    this.#storeRefuses = true;
    const untilMs = performance.now() + refusalMs;
    if (batch.some(growing)) this.#growthRefusedUntilMs = untilMs;
    else this.#allRefusedUntilMs = untilMs;
    return this.#refuse(batch, batch.some(growing) ? growing : () => true, storeRefused(), 'store');
  }

  /** Rejects the writes that `isRefused` selects and returns the others. */
  #refuse(
    batch: Pending[],
    isRefused: (pending: Pending) => boolean,
    error: ApiError,
    refusal: CommitRefusal,
  ): Pending[] {
    const rest = batch.filter((pending) => !isRefused(pending));
    if (rest.length === batch.length) return batch;
    this.#isRefusing = true;
    this.#options.metrics.refused(batch.length - rest.length, refusal);
    for (const pending of batch) if (isRefused(pending)) pending.completion.reject(error);
    return rest;
  }
}

function growing({ write }: Pending): boolean {
  return addsRecords(write);
}

function storeRefused(): ApiError {
  return unavailable('The store cannot be written: its disk is full or failing. Retry later.', 5);
}
