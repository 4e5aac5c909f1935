import { ApiError, diskFull, unavailable } from '../../../core/errors.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import { newRequestId } from '../../../core/telemetry/request-id.ts';
import type { CommitMetrics, CommitRefusal } from '../../../core/telemetry/worker-metrics.ts';
import { busyWrites, type Completion, type Effects } from '../../../domain/write.ts';
import { StoreError } from '../../tables/store-error.ts';
import type { DeviceVersions } from '../devices/device-versions.ts';
import type { Environment } from '../environment/environment.ts';
import type { ShardState } from './state.ts';
import { addsMail, addsRecords, type Write, type WriteAnswer } from './write.ts';

interface Pending {
  write: Write;
  completion: Completion<WriteAnswer>;
  answer: WriteAnswer;
}

/** Bounds one transaction, and what a thread copies for it; the rest waits for the next. */
const batchWritesMax = 4_096;

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
  /** Time until which the store is not tried: for writes that add records, and for any. */
  #growthRefusedUntilMs = 0;
  #allRefusedUntilMs = 0;
  #storeRefuses = false;
  /** True if a write was refused since one that adds records was accepted. */
  #isRefusing = false;
  /** True if the state still has what a failed transaction left. */
  #owesRollback = false;

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

  /** Goes on whatever throws: nothing else would ever start it again, and no write of the shard would be answered. */
  async #run(): Promise<void> {
    // Let the rest of this turn's writes arrive: they are free in the same transaction.
    await Promise.resolve();
    try {
      while (this.#queue.length > 0) {
        if (this.#isBusy()) await this.#delayCommit();
        this.#guard('collecting writes', () => this.#options.collect());
        const batch = this.#take();
        this.#settle(await this.#store(batch));
        Atomics.sub(this.#options.depth, 0, batch.length);
      }
    } finally {
      this.#running = undefined;
    }
  }

  /** Takes writes for one transaction: a settlement of a sync costs as much as one by itself. */
  #take(): Pending[] {
    let count = 0;
    let weight = 0;
    for (const { write } of this.#queue) {
      weight += write.type === 'sync' ? 1 + write.params.settlements.length : 1;
      if (weight > batchWritesMax && count > 0) break;
      count += 1;
    }
    return this.#queue.splice(0, count);
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

  /** Returns the writes that are stored; refuses the others, all of them if it throws. */
  async #store(queued: Pending[]): Promise<Pending[]> {
    let batch = queued;
    try {
      batch = this.#withoutRefused(batch);
      while (batch.length > 0) {
        const failure = await this.#transact(batch);
        if (failure === undefined) break;
        this.#rollback();
        batch = this.#withoutCulprit(batch, failure.culprit, failure.error);
      }
      return batch;
    } catch (error) {
      this.#options.log.error({ err: error }, 'commit failed; its writes are refused');
      // Whatever it is, it is tried again after a pause, not with each batch.
      this.#allRefusedUntilMs = performance.now() + refusalMs;
      return this.#refuse(batch, () => true, storeRefused(), 'store');
    }
  }

  /** Stores all writes or none. Returns the failure, with the write that threw if one did. */
  async #transact(
    batch: readonly Pending[],
  ): Promise<{ culprit: Pending | undefined; error: Error } | undefined> {
    const { environment, state } = this.#options;
    let culprit: Pending | undefined;
    if (this.#owesRollback) this.#rollback();
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
      return undefined;
    } catch (error) {
      return { culprit, error: error as Error };
    }
  }

  /** It reads, so it may fail; then it is done before the next transaction, or that is refused too. */
  #rollback(): void {
    this.#owesRollback = true;
    this.#options.state.rollback();
    this.#owesRollback = false;
  }

  /** Answers stored writes, and announces them. */
  #settle(batch: readonly Pending[]): void {
    if (batch.length === 0) return;
    const { state, versions, metrics, log, onEffects } = this.#options;
    if (this.#storeRefuses) log.info('store accepts commits again');
    this.#storeRefuses = false;
    metrics.committed(batch.length);
    if (this.#isRefusing && batch.some(growing)) {
      this.#isRefusing = false;
      metrics.recovered();
    }
    const effects = state.takeEffects();
    this.#guard('raising versions', () => {
      for (const device of effects.changed) versions.raise(device);
    });
    for (const pending of batch) this.#answer(pending);
    this.#guard('announcing', () => onEffects(effects));
  }

  /** Settles a write with its answer, or with the error. A guard of its own: this runs for each write. */
  #answer({ completion, answer }: Pending, error?: ApiError): void {
    try {
      if (error === undefined) completion.resolve(answer);
      else completion.reject(error);
    } catch (failure) {
      this.#options.log.error({ err: failure }, 'answering a write failed');
    }
  }

  /** Runs a step that has no say in whether writes are stored. */
  #guard(step: string, run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#options.log.error({ err: error }, `${step} failed`);
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
    if (!environment.hasDiskForMail()) batch = this.#refuse(batch, addingMail, diskFull(), 'disk');
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
      this.#answer(culprit, new ApiError('internal_error', { requestId }));
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
    for (const pending of batch) if (isRefused(pending)) this.#answer(pending, error);
    return rest;
  }
}

function growing({ write }: Pending): boolean {
  return addsRecords(write);
}

function addingMail({ write }: Pending): boolean {
  return addsMail(write);
}

function storeRefused(): ApiError {
  return unavailable('The store cannot be written: its disk is full or failing. Retry later.', 5);
}
