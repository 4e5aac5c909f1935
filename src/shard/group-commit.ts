import { ApiError, unavailable } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import type { CommitMetrics } from '../core/metrics.ts';
import type { Environment } from '../store/environment.ts';
import type { Effects, ShardState } from './state.ts';
import type { DeviceVersions } from './versions.ts';
import { type Answer, addsRecords, type Completion, type Write } from './write.ts';

interface Pending {
  write: Write;
  completion: Completion<Answer>;
  answer: Answer;
}

/** Keeps one transaction, and what a thread copies for it, within bounds; the rest waits for the next. */
const batchWritesMax = 4_096;

/**
 * With fewer writes than this under way, nobody waits for others to join in: a shard with so little to do is
 * better quick than thrifty.
 */
export const busyWrites = 8;

export interface GroupCommitOptions {
  environment: Environment;
  state: ShardState;
  versions: DeviceVersions;
  /** Writes under way to this shard. Each is counted in by whoever submits it, and out here. */
  depth: Int32Array<SharedArrayBuffer>;
  metrics: CommitMetrics;
  log: Log;
  /** While the shard is busy, the least time from one commit to the next. */
  gatherMilliseconds: number;
  /** Brings in, by `submit`, what else there is to write. */
  collect(): void;
  /** Called after each commit, once its writes are answered: store, answer, announce. */
  onEffects(effects: Effects): void;
}

/**
 * The one writer of a shard. All that waits is applied in one transaction, made durable, answered; what
 * arrives meanwhile is the next batch. A lone write on an idle shard starts at once.
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  #queue: Pending[] = [];
  #running: Promise<void> | undefined;
  #lastCommitAtMs = 0;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
  }

  submit(write: Write, completion: Completion<Answer>): void {
    this.#queue.push({ write, completion, answer: undefined });
    this.#running ??= this.#run();
  }

  /** Settles when all that was submitted before is on disk or refused. */
  async drain(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // Let the rest of this turn's writes arrive: they cost nothing more in the same transaction.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      if (this.#isBusy()) await this.#gather();
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
   * A commit costs the same whatever is in it, some hundred microseconds of CPU on three threads: so a busy
   * shard lets writes join in, as PostgreSQL's commit_delay does, until it is time.
   */
  async #gather(): Promise<void> {
    const waitMs = this.#lastCommitAtMs + this.#options.gatherMilliseconds - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    this.#lastCommitAtMs = performance.now();
  }

  async #commit(queued: Pending[]): Promise<void> {
    const { environment, state, versions, metrics, onEffects } = this.#options;
    let batch = queued;
    if (!environment.hasRoom()) {
      batch = refuseGrowth(queued);
    }
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
      metrics.committed(batch.length);
      const effects = state.takeEffects();
      for (const device of effects.changed) versions.raise(device);
      for (const { completion, answer } of batch) completion.resolve(answer);
      onEffects(effects);
      return;
    }
  }

  /**
   * A write that throws by itself (a poisoned record, a defect) is refused alone and the others are tried
   * again; when LMDB refuses, for want of disk say, all are.
   */
  #withoutCulprit(batch: Pending[], culprit: Pending | undefined, error: Error): Pending[] {
    const { metrics, log } = this.#options;
    metrics.failed();
    // LMDB's errors carry its number; a defect of ours carries none, or one of Node's names.
    const isFromStore = typeof (error as { code?: unknown }).code === 'number';
    if (culprit !== undefined && !isFromStore) {
      log.error({ err: error, write: culprit.write.type }, 'a write failed and was taken back');
      culprit.completion.reject(new ApiError('internal_error'));
      return batch.filter((pending) => pending !== culprit);
    }
    log.error({ err: error, writes: batch.length }, 'the store refused a commit; nothing of it was kept');
    for (const { completion } of batch)
      completion.reject(unavailable('The store cannot take writes now.', 5));
    return [];
  }
}

function refuseGrowth(batch: Pending[]): Pending[] {
  const growing = batch.filter(({ write }) => addsRecords(write.type));
  for (const { completion } of growing)
    completion.reject(unavailable('The shard has reached mapBytesMax.', 30));
  return batch.filter(({ write }) => !addsRecords(write.type));
}
