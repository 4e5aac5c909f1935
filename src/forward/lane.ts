import { isUnavailable } from '../core/errors.ts';
import { type Log, logFailure } from '../core/log.ts';
import type { Forwarder } from '../registry/forwarder.ts';
import type { StoredRecord } from '../shard/shard.ts';
import { type BackoffLimits, pause, waitOf } from './backoff.ts';
import type { ByteBudget } from './byte-budget.ts';
import { Ending } from './ending.ts';
import type { Progress } from './progress.ts';
import type { Sender } from './sender.ts';
import type { Batch, Source } from './source.ts';

export interface LaneOptions {
  forwarder: Forwarder;
  source: Source;
  sender: Sender;
  budget: ByteBudget;
  backoff: BackoffLimits;
  progress: Progress;
  log: Log;
  /** Keeps one that was refused. False while there is no room for it. @throws ApiError unavailable. */
  bury(record: StoredRecord, reason: string): Promise<boolean>;
  signal: AbortSignal;
}

/** Until what could not be read or stored is tried again; and until room among the dead letters is looked for. */
const failureMs = 1_000;
/** About what is around a payload. */
const overheadBytes = 256;

/**
 * From one source to the destination, one batch after another, so that the order of the source holds. A batch is
 * acknowledged when all of it is delivered or among the dead letters, and never before.
 */
export class Lane {
  readonly #options: LaneOptions;
  /** Attempts that failed since the last one that did not. */
  #failures = 0;
  #resumeAtMs = 0;
  /** Of a batch that was let go of while it waited: it is to be the same one when it is read again. */
  #recordsAgain: number | undefined;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /** Until the signal; never throws. */
  async run(): Promise<void> {
    const { source, signal, log, forwarder } = this.#options;
    const { fleetId, name, batchRecordsMax } = forwarder;
    while (!signal.aborted) {
      try {
        await pause(this.#resumeAtMs - performance.now(), signal);
        const batch = await source.fetch(this.#recordsAgain ?? batchRecordsMax, signal);
        // A server that stops has no more to give, a little before it says so.
        if (batch === undefined) await pause(failureMs, signal);
        else if (await this.#forward(batch)) await this.#linger(batch);
      } catch (error) {
        logFailure(log, error, 'a forwarder cannot go on now', { fleet: fleetId, forwarder: name });
        this.#resumeAtMs = performance.now() + failureMs;
      }
    }
  }

  /** Whether it was acknowledged. */
  async #forward(batch: Batch): Promise<boolean> {
    const { budget, signal } = this.#options;
    const bytes = batch.records.reduce((sum, { payload }) => sum + payload.length + overheadBytes, 0);
    if (!budget.take(bytes)) {
      batch.release();
      await budget.freed(signal);
      return false;
    }
    let isDone = false;
    try {
      if (await this.#deliver(batch.records))
        isDone = (await this.#store(() => batch.acknowledge())) !== undefined;
      this.#recordsAgain = isDone ? undefined : batch.records.length;
    } finally {
      if (!isDone) batch.release();
      budget.give(bytes);
    }
    return isDone;
  }

  /**
   * Tries until they are delivered or buried; false where the lane has to let go of them before. A batch that is
   * refused is cut in two until the record is found that nobody will take.
   */
  async #deliver(records: readonly StoredRecord[]): Promise<boolean> {
    const { sender, progress, signal } = this.#options;
    while (!signal.aborted) {
      const outcome = await sender.send(records, signal);
      if (outcome.result === 'delivered') {
        this.#failures = 0;
        progress.delivered(records.length);
        return true;
      }
      // What was under way at the end of the server is neither well nor ill: it comes again.
      if (signal.aborted) return false;
      if (outcome.result === 'refused') {
        this.#failures = 0;
        const [only] = records;
        if (records.length === 1 && only !== undefined) return this.#bury(only, outcome.reason);
        const middle = records.length >> 1;
        return (
          (await this.#deliver(records.slice(0, middle))) && (await this.#deliver(records.slice(middle)))
        );
      }
      progress.failed(records.length, outcome.reason);
      if (!(await this.#backOff(outcome.retryAfterMs))) return false;
    }
    return false;
  }

  /** False where somebody else needs the bytes meanwhile: then the batch is read again when its time has come. */
  async #backOff(retryAfterMs: number | undefined): Promise<boolean> {
    const { budget, backoff, progress, signal } = this.#options;
    this.#failures += 1;
    const waitMs = waitOf(this.#failures, backoff, retryAfterMs);
    this.#resumeAtMs = performance.now() + waitMs;
    progress.backingOff += 1;
    using ending = new Ending(signal);
    const isOver = await Promise.race([
      pause(waitMs, ending.signal).then(() => true),
      budget.wanted(ending.signal).then(() => false),
    ]);
    progress.backingOff -= 1;
    return isOver && !signal.aborted;
  }

  async #bury(record: StoredRecord, reason: string): Promise<boolean> {
    const { bury, progress, signal } = this.#options;
    let outcome = await this.#store(() => bury(record, reason));
    const isHeld = outcome?.result === false;
    if (isHeld) progress.held += 1;
    while (outcome?.result === false && !signal.aborted) {
      await pause(failureMs, signal);
      outcome = await this.#store(() => bury(record, reason));
    }
    if (isHeld) progress.held -= 1;
    if (outcome?.result) progress.dead(reason);
    return outcome?.result ?? false;
  }

  /**
   * Tries until it is on disk, while that is full say: what was delivered is not sent once more for that. Undefined
   * when the signal came first.
   */
  async #store<T>(store: () => Promise<T>): Promise<{ result: T } | undefined> {
    const { forwarder, log, signal } = this.#options;
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        return { result: await store() };
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        const { fleetId, name } = forwarder;
        if (attempt === 1) {
          log.warn(
            { err: error, fleet: fleetId, forwarder: name },
            'a forwarder cannot store how far it has come',
          );
        }
        await pause(failureMs, signal);
      }
    }
    return undefined;
  }

  /** What comes meanwhile shares the next batch. */
  async #linger(batch: Batch): Promise<void> {
    const { forwarder, signal } = this.#options;
    const { lingerMilliseconds, batchRecordsMax } = forwarder;
    if (lingerMilliseconds === 0 || batch.records.length >= batchRecordsMax) return;
    await pause(lingerMilliseconds, signal);
  }
}
