import { queueFull, unavailable } from '../../../core/errors.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import type { CommitMetrics } from '../../../core/telemetry/worker-metrics.ts';
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

/**
 * Batches the writes of one thread to one database, one transaction per batch: writes that come while all transactions
 * are in flight share the next one. So a lone write starts at once, and under load each transaction carries as much as
 * it may.
 */
export class Writer {
  readonly #options: WriterOptions;
  #queue: Pending[] = [];
  #bytes = 0;
  #count = 0;
  #runs = 0;
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
      if (this.#runs < this.#options.concurrency) void this.#run();
    });
  }

  /** Refuses further writes. Settles when all queued ones are durable or refused. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#runs > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  async #run(): Promise<void> {
    this.#runs += 1;
    // Lets the rest of this turn's writes arrive: they cost nothing more in the same transaction.
    await Promise.resolve();
    try {
      while (this.#queue.length > 0) {
        this.#refuseLate();
        const batch = this.#take();
        try {
          await this.#commit(batch);
        } finally {
          this.#count -= batch.length;
        }
      }
    } finally {
      // In the turn of the last look at the queue: a write that comes after it starts a run of its own.
      this.#runs -= 1;
      if (this.#runs === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    }
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
    const isExclusive = ({ type }: Pending): boolean => this.#options.exclusiveOperations[type] !== undefined;
    let count = 0;
    let bytes = 0;
    for (const pending of this.#queue) {
      if (isExclusive(pending)) return this.#splice(Math.max(1, count));
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
