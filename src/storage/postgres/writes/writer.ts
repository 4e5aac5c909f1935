import { queueFull, unavailable } from '../../../core/errors.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import type { CommitMetrics } from '../../../core/telemetry/worker-metrics.ts';
import { busyWrites } from '../../../domain/write.ts';
import type { StorageConfig } from '../../config.ts';
import { retryConflicts } from '../connection/conflict-retry.ts';
import type { Database } from '../connection/database.ts';
import { notifyStreams } from '../streams/stream-notifications.ts';
import type {
  ExclusiveOperation,
  ExclusiveOperations,
  Operation,
  OperationAnswer,
  Operations,
  OperationType,
  OperationWrites,
} from './operation.ts';
import { UnitOfWork } from './unit-of-work.ts';

export interface WriterOptions {
  database: Database;
  operations: Operations;
  exclusiveOperations: ExclusiveOperations;
  /** Maximum transactions in flight. */
  concurrency: number;
  /** Longest wait of a busy writer for more writes after a commit. */
  commitDelayMilliseconds: number;
  settings: StorageConfig['settings'];
  metrics: CommitMetrics;
  log: Log;
  /** Called after each commit. */
  onCommit?(work: UnitOfWork): void;
}

interface Pending {
  type: OperationType;
  params: OperationWrites[OperationType]['params'];
  bytes: number;
  untilMs: number;
  resolve(answer: OperationAnswer): void;
  reject(error: unknown): void;
}

/** Maximum writes per transaction: more add latency and save nothing. */
const batchWritesMax = 256;
/** Maximum payload bytes per transaction, but for a single write: a sync may bring hundreds of records. */
const batchBytesMax = 1_048_576;

/** Time after which a transaction, which waits for a lock perhaps, holds up no other. */
const slowMilliseconds = 50;

/**
 * Batches the writes of one thread to one database, one transaction per batch: writes that come while one is under way
 * share the next. It costs node and database some hundred microseconds, whatever its size, and several nodes have each a
 * part of the writes only: so one begins beside another only if it is full, and a busy writer lets those it has just
 * answered send their next writes first, like PostgreSQL's commit_delay. A lone write on an idle writer starts at once.
 */
export class Writer {
  readonly #options: WriterOptions;
  #queue: Pending[] = [];
  #bytes = 0;
  #count = 0;
  #transactions = 0;
  /** Batches under way in transactions that are not slow. */
  #awaited = 0;
  #isBeginning = false;
  #delay: NodeJS.Timeout | undefined;
  /** Writes of the last batch, and when it was answered. */
  #batchBefore = 0;
  #answeredAtMs = 0;
  readonly #onIdle: (() => void)[] = [];
  #isClosed = false;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** True if a write would be accepted now. */
  accepts(): boolean {
    const { shardQueueMax, shardQueueBytesMax } = this.#options.settings.current;
    return this.#count < shardQueueMax && this.#bytes < shardQueueBytesMax;
  }

  /** Settles when the write is durable. `bytes` is the size of its payload. @throws ApiError unavailable */
  write<T extends OperationType>(
    type: T,
    params: OperationWrites[T]['params'],
    bytes = 0,
  ): Promise<OperationWrites[T]['answer']> {
    // As on LMDB: a front end has at most one write of notes in flight, and overload is no reason to lose them.
    if (this.#isClosed) return Promise.reject(unavailable('The server is stopping.'));
    if (type !== 'noteActivity' && !this.accepts()) return Promise.reject(queueFull());
    this.#count += 1;
    this.#bytes += bytes;
    return new Promise((resolve, reject) => {
      const untilMs = performance.now() + this.#options.database.timeoutMilliseconds;
      this.#queue.push({
        type,
        params,
        bytes,
        untilMs,
        resolve: resolve as (answer: OperationAnswer) => void,
        reject,
      });
      this.#beginSoon();
    });
  }

  /** Refuses further writes. Settles when all queued ones are durable or refused. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#count > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  /** Lets the rest of this turn's writes arrive: they cost nothing more in the same transaction. */
  #beginSoon(): void {
    if (this.#isBeginning) return;
    this.#isBeginning = true;
    queueMicrotask(() => {
      this.#isBeginning = false;
      this.#begin();
    });
  }

  #begin(): void {
    while (this.#queue.length > 0 && this.#transactions < this.#options.concurrency && this.#isTime()) {
      void this.#run();
    }
  }

  /** True if a transaction may begin now; else it begins after the one under way, or after a delay. */
  #isTime(): boolean {
    const { length } = this.#queue;
    if (length >= batchWritesMax || this.#bytes >= batchBytesMax || this.#isExclusive(this.#queue[0]))
      return true;
    if (this.#awaited > 0) return false;
    if (this.#batchBefore < busyWrites || length >= this.#batchBefore) return true;
    const waitMs = this.#answeredAtMs + this.#options.commitDelayMilliseconds - performance.now();
    if (waitMs <= 0) return true;
    this.#delay ??= setTimeout(() => {
      this.#delay = undefined;
      this.#begin();
    }, waitMs);
    return false;
  }

  async #run(): Promise<void> {
    this.#transactions += 1;
    clearTimeout(this.#delay);
    this.#delay = undefined;
    this.#refuseLate();
    const batch = this.#take();
    const endWait = this.#isExclusive(batch[0]) ? () => {} : this.#awaitBatch(batch.length);
    try {
      await this.#commit(batch);
    } finally {
      endWait();
      this.#transactions -= 1;
      this.#count -= batch.length;
      if (this.#count === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
      this.#begin();
    }
  }

  /** Has others wait for a batch until it is slow, or answered: then call what this returns. */
  #awaitBatch(length: number): () => void {
    this.#awaited += 1;
    this.#batchBefore = length;
    let slow: NodeJS.Timeout | undefined = setTimeout(() => {
      slow = undefined;
      this.#awaited -= 1;
      this.#begin();
    }, slowMilliseconds);
    return () => {
      this.#answeredAtMs = performance.now();
      if (slow === undefined) return;
      clearTimeout(slow);
      this.#awaited -= 1;
    };
  }

  #isExclusive(write: Pending | undefined): boolean {
    return write !== undefined && this.#options.exclusiveOperations[write.type] !== undefined;
  }

  /** Refuses writes that have waited for the timeout of the database: it is stuck, or far too slow. */
  #refuseLate(): void {
    const nowMs = performance.now();
    const end = this.#queue.findIndex(({ untilMs }) => untilMs > nowMs);
    const late = this.#splice(end < 0 ? this.#queue.length : end);
    if (late.length === 0) return;
    this.#count -= late.length;
    this.#options.metrics.refused(late.length, 'store');
    for (const { reject } of late)
      reject(unavailable('The database of this device is too slow. Retry later.'));
  }

  /** Takes writes up to an exclusive one; or that one. */
  #take(): Pending[] {
    let count = 0;
    let bytes = 0;
    for (const pending of this.#queue) {
      if (this.#isExclusive(pending)) return this.#splice(Math.max(1, count));
      bytes += pending.bytes;
      if (count > 0 && (count === batchWritesMax || bytes > batchBytesMax)) break;
      count += 1;
    }
    return this.#splice(count);
  }

  #splice(count: number): Pending[] {
    const taken = this.#queue.splice(0, count);
    for (const { bytes } of taken) this.#bytes -= bytes;
    return taken;
  }

  async #commit(batch: Pending[]): Promise<void> {
    const { metrics } = this.#options;
    let left = batch;
    while (left.length > 0) {
      const failed = new Map<Pending, unknown>();
      try {
        const answers = await retryConflicts(() => this.#attempt(left, failed));
        metrics.committed(left.length);
        metrics.recovered();
        for (const [index, pending] of left.entries()) pending.resolve(answers[index] as OperationAnswer);
        return;
      } catch (error) {
        if (failed.size === 0) {
          metrics.refused(left.length, 'store');
          for (const pending of left) pending.reject(error);
          return;
        }
        // Only those fail: the others are retried without them.
        for (const [pending, reason] of failed) {
          this.#options.log.error({ err: reason, write: pending.type }, 'a write failed');
          pending.reject(reason);
        }
        left = left.filter((pending) => !failed.has(pending));
      }
    }
  }

  async #attempt(batch: readonly Pending[], failed: Map<Pending, unknown>): Promise<OperationAnswer[]> {
    try {
      return await this.#transact(batch, failed);
    } catch (error) {
      this.#options.metrics.failed();
      throw error;
    }
  }

  #transact(batch: readonly Pending[], failed: Map<Pending, unknown>): Promise<OperationAnswer[]> {
    const { database, operations, exclusiveOperations, onCommit } = this.#options;
    return database.transaction(async (transaction) => {
      const work = new UnitOfWork();
      const answers: OperationAnswer[] = [];
      const exclusive =
        batch[0] && (exclusiveOperations[batch[0].type] as ExclusiveOperation<OperationType> | undefined);
      if (exclusive !== undefined && batch[0] !== undefined) {
        answers.push(await exclusive(work, transaction, batch[0].params as never));
      } else {
        const known = batch.map(({ type, params }) => {
          const operation = operations[type] as Operation<OperationType> | undefined;
          if (operation === undefined) throw new Error(`no operation ${type}`);
          return { operation, params: params as never };
        });
        for (const { operation, params } of known) operation.preload(work, params);
        await work.load(transaction);
        for (const [index, { operation, params }] of known.entries()) {
          try {
            answers.push(operation.apply(work, params));
          } catch (error) {
            failed.set(batch[index] as Pending, error);
            throw error;
          }
        }
      }
      work.store(transaction);
      notifyStreams(transaction, work);
      const mailboxes = work.readMailboxes(transaction);
      await transaction.commit();
      await mailboxes;
      onCommit?.(work);
      return answers;
    });
  }
}
