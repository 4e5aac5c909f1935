import { sleep } from '../../../core/async.ts';
import { isUnavailable } from '../../../core/errors.ts';
import { deviceIdOf } from '../../../core/identity.ts';
import { type Log, logFailure } from '../../../core/telemetry/log.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import type { Burial } from '../dead-letters.ts';
import type { Forwarder } from '../declaration/forwarder.ts';
import { LinkedAbort } from '../senders/linked-abort.ts';
import type { Outcome, Sender } from '../senders/sender.ts';
import type { ByteBudget } from './byte-budget.ts';
import type { Source, SourceBatch } from './source.ts';

/** How one forwarder is doing, since the server started. */
export class ForwarderStats {
  readonly counts = { delivered: 0, failed: 0, dead: 0, dropped: 0 };
  lastError: { atMs: number; msg: string } | undefined;
  lastDeliveredAtMs: number | undefined;
  /** Some of what was taken last, by device, to see whether the destination takes anything. */
  readonly taken = new Map<string, StoredRecord>();
  /** Lanes that wait to try again. */
  backingOff = 0;
  /** Lanes that wait for room among the dead letters. */
  held = 0;

  delivered(records: number): void {
    this.counts.delivered += records;
    this.lastDeliveredAtMs = Date.now();
  }

  /** An attempt that is made again. */
  failed(records: number, msg: string): void {
    this.counts.failed += records;
    this.lastError = { atMs: Date.now(), msg };
  }

  /** One that will not be sent again; kept among the dead letters or not. */
  dead(msg: string, isKept: boolean): void {
    this.counts[isKept ? 'dead' : 'dropped'] += 1;
    this.lastError = { atMs: Date.now(), msg };
  }
}

/** Of each device whose last record is kept in memory, for each forwarder. */
const keptDevicesMax = 3;
const keptBytesMax = 1_024;
/** Devices whose first record is tried while none was taken yet. */
const devicesMax = 8;

/** Keeps the last of what was taken, in memory of its own: what it came in may be large. */
function keepTaken({ taken }: ForwarderStats, records: readonly StoredRecord[]): void {
  const last = records.at(-1);
  if (last === undefined || last.payload.length > keptBytesMax) return;
  // The newest of all comes last.
  taken.delete(last.device);
  taken.set(last.device, { ...last, id: Buffer.from(last.id), payload: Buffer.from(last.payload) });
  for (const oldest of taken.keys()) {
    if (taken.size <= keptDevicesMax) break;
    taken.delete(oldest);
  }
}

/**
 * Whether the destination takes records while it does not take these: then it is not out of order, and something is
 * wrong with one of them. What it took last is sent once more; where nothing was since the start, the first record of
 * each of some devices, which breaks no device's order.
 */
async function isTakingOthers(
  records: readonly StoredRecord[],
  sender: Sender,
  progress: ForwarderStats,
  signal: AbortSignal,
): Promise<boolean> {
  const known = [...progress.taken.values()].reverse();
  for (const record of known.length === 0 ? firstOfDevices(records) : known) {
    if (signal.aborted) return false;
    const { result } = await sender.send([record], signal, { isAgain: true });
    if (result !== 'delivered') continue;
    keepTaken(progress, [record]);
    return true;
  }
  return false;
}

function firstOfDevices(records: readonly StoredRecord[]): StoredRecord[] {
  const first = new Map<string, StoredRecord>();
  for (const record of records) {
    const deviceId = deviceIdOf(record.device);
    if (!first.has(deviceId)) first.set(deviceId, record);
    if (first.size === devicesMax) break;
  }
  // Alone it would tell nothing of itself.
  return records.length === 1 ? [] : [...first.values()];
}

interface BackoffLimits {
  firstMs: number;
  longestMs: number;
}

/**
 * How long until the attempt behind this one, from 1: twice as long each time, and somewhere in the upper half of that,
 * so that lanes that failed together do not come back together. What the receiver asks for holds where it is longer.
 */
export function waitOf(attempt: number, { firstMs, longestMs }: BackoffLimits, retryAfterMs = 0): number {
  const nominal = Math.min(longestMs, firstMs * 2 ** Math.min(attempt - 1, 40));
  const jittered = nominal * (0.5 + Math.random() / 2);
  return Math.min(longestMs, Math.max(jittered, retryAfterMs));
}

export interface DeliveryLoopOptions {
  forwarder: Forwarder;
  source: Source;
  sender: Sender;
  budget: ByteBudget;
  backoff: BackoffLimits;
  progress: ForwarderStats;
  log: Log;
  /** Keeps one that was refused. @throws ApiError unavailable. */
  bury(record: StoredRecord, reason: string): Promise<Burial>;
  signal: AbortSignal;
}

/**
 * Attempts with the same answer while another record is taken, before a batch is looked into; and of a record alone,
 * before it is given up. Half a minute by the waits between them: a receiver that hiccups is not taken at its word.
 */
const sameAnswersMax = 5;
/** Until what could not be read or stored is tried again; and until room among the dead letters is looked for. */
const failureMs = 1_000;
/** About what is around a payload. */
const overheadBytes = 256;

/**
 * From one source to the destination, one batch after another, so that the order of the source holds. A batch is
 * acknowledged when all of it is delivered or among the dead letters, and never before.
 */
export class DeliveryLoop {
  readonly #options: DeliveryLoopOptions;
  /** Attempts that failed since the last one that did not. */
  #failures = 0;
  /** What the last of them answered, and how many did one behind the other. */
  #answer: string | undefined;
  #sameAnswers = 0;
  #resumeAtMs = 0;
  /** Of a batch that was let go of while it waited: it is to be the same one when it is read again. */
  #recordsAgain: number | undefined;

  constructor(options: DeliveryLoopOptions) {
    this.#options = options;
  }

  /** Until the signal; never throws. */
  async run(): Promise<void> {
    const { source, signal, log, forwarder } = this.#options;
    const { fleetId, name, batchRecordsMax } = forwarder;
    while (!signal.aborted) {
      try {
        await sleep(this.#resumeAtMs - performance.now(), signal);
        const batch = await source.fetch(this.#recordsAgain ?? batchRecordsMax, signal);
        // A server that stops has no more to give, a little before it says so.
        if (batch === undefined) await sleep(failureMs, signal);
        else if (await this.#forward(batch)) await this.#linger(batch);
      } catch (error) {
        logFailure(log, error, 'a forwarder cannot go on now', { fleet: fleetId, forwarder: name });
        this.#resumeAtMs = performance.now() + failureMs;
      }
    }
  }

  /** Whether it was acknowledged. */
  async #forward(batch: SourceBatch): Promise<boolean> {
    const { budget, signal, forwarder } = this.#options;
    const { fleetId } = forwarder;
    const bytes = batch.records.reduce((sum, { payload }) => sum + payload.length + overheadBytes, 0);
    if (!budget.take(fleetId, bytes)) {
      batch.release();
      await budget.freed(fleetId, bytes, signal);
      return false;
    }
    let isDone = false;
    try {
      if (await this.#deliver(batch.records))
        isDone = (await this.#store(() => batch.acknowledge())) !== undefined;
      this.#recordsAgain = isDone ? undefined : batch.records.length;
    } finally {
      if (!isDone) batch.release();
      budget.give(fleetId, bytes);
    }
    return isDone;
  }

  /**
   * Tries until they are delivered or buried; false where the lane has to let go of them before. A batch that is
   * refused is cut in two until the record is found that nobody will take; so is one that is answered again and again
   * with the same error while the destination takes another record.
   */
  async #deliver(records: readonly StoredRecord[]): Promise<boolean> {
    const { sender, progress, signal } = this.#options;
    while (!signal.aborted) {
      const outcome = await this.#send(records);
      if (outcome === undefined) return false;
      if (outcome.result === 'delivered') return true;
      if (outcome.result === 'refused') return this.#refuse(records, outcome.reason);
      if (this.#sameAnswers >= sameAnswersMax && (await isTakingOthers(records, sender, progress, signal))) {
        return this.#sift(records, outcome.reason);
      }
      if (!(await this.#backOff(outcome.retryAfterMs))) return false;
    }
    return false;
  }

  /** Undefined at the end of the server: what was under way then is neither well nor ill, and comes again. */
  async #send(records: readonly StoredRecord[]): Promise<Outcome | undefined> {
    const { sender, progress, signal } = this.#options;
    const outcome = await sender.send(records, signal);
    if (outcome.result === 'delivered') {
      progress.delivered(records.length);
      keepTaken(progress, records);
    } else if (signal.aborted) return undefined;
    const answer = outcome.result === 'failed' && outcome.isAnswer ? outcome.reason : undefined;
    this.#sameAnswers = answer === undefined ? 0 : answer === this.#answer ? this.#sameAnswers + 1 : 1;
    this.#answer = answer;
    if (outcome.result === 'failed') progress.failed(records.length, outcome.reason);
    else this.#failures = 0;
    return outcome;
  }

  async #refuse(records: readonly StoredRecord[], reason: string): Promise<boolean> {
    const [only] = records;
    if (records.length === 1 && only !== undefined) return this.#bury(only, reason);
    return this.#inHalves(records, (half) => this.#deliver(half));
  }

  /** Of records one of which is the cause, as the others are taken: those that are not are delivered, in their order. */
  async #sift(records: readonly StoredRecord[], reason: string): Promise<boolean> {
    const [only] = records;
    if (records.length === 1 && only !== undefined) return this.#condemn(only, reason);
    return this.#inHalves(records, async (half) => {
      const outcome = await this.#send(half);
      if (outcome === undefined) return false;
      if (outcome.result === 'delivered') return true;
      if (outcome.result === 'refused') return this.#refuse(half, outcome.reason);
      if (outcome.isAnswer && outcome.reason === reason) return this.#sift(half, reason);
      return (await this.#backOff(outcome.retryAfterMs)) && this.#deliver(half);
    });
  }

  /** It fails by itself again and again, and right after that another record is taken: so it is not the destination. */
  async #condemn(record: StoredRecord, reason: string): Promise<boolean> {
    const { sender, progress, signal } = this.#options;
    for (let attempt = 1; attempt < sameAnswersMax; attempt += 1) {
      const outcome = await this.#send([record]);
      if (outcome === undefined) return false;
      if (outcome.result === 'delivered') return true;
      if (outcome.result === 'refused') return this.#bury(record, outcome.reason);
      const isSame = outcome.isAnswer === true && outcome.reason === reason;
      if (!isSame) return (await this.#backOff(outcome.retryAfterMs)) && this.#deliver([record]);
    }
    if (await isTakingOthers([record], sender, progress, signal)) return this.#bury(record, reason);
    return (await this.#backOff(undefined)) && this.#deliver([record]);
  }

  async #inHalves(
    records: readonly StoredRecord[],
    handle: (half: readonly StoredRecord[]) => Promise<boolean>,
  ): Promise<boolean> {
    const middle = records.length >> 1;
    return (await handle(records.slice(0, middle))) && (await handle(records.slice(middle)));
  }

  /** False where somebody else needs the bytes meanwhile: then the batch is read again when its time has come. */
  async #backOff(retryAfterMs: number | undefined): Promise<boolean> {
    const { budget, backoff, progress, signal } = this.#options;
    this.#failures += 1;
    const waitMs = waitOf(this.#failures, backoff, retryAfterMs);
    this.#resumeAtMs = performance.now() + waitMs;
    progress.backingOff += 1;
    using ending = new LinkedAbort(signal);
    const isOver = await Promise.race([
      sleep(waitMs, ending.signal).then(() => true),
      budget.wanted(ending.signal).then(() => false),
    ]);
    progress.backingOff -= 1;
    return isOver && !signal.aborted;
  }

  /** False where the lane has to let go before there is room for it. */
  async #bury(record: StoredRecord, reason: string): Promise<boolean> {
    const { progress, signal } = this.#options;
    let burial = await this.#put(record, reason);
    const isHeld = burial === 'held';
    if (isHeld) progress.held += 1;
    while (burial === 'held' && !signal.aborted) {
      await sleep(failureMs, signal);
      burial = await this.#put(record, reason);
    }
    if (isHeld) progress.held -= 1;
    if (burial === undefined || burial === 'held') return false;
    progress.dead(reason, burial === 'kept');
    return true;
  }

  /**
   * A device that has its share of dead letters is not to stop the others: what else of it is refused is dropped, as
   * long as something else is taken. Where nothing is, it is the destination that refuses, and nothing is dropped.
   */
  async #put(record: StoredRecord, reason: string): Promise<'kept' | 'dropped' | 'held' | undefined> {
    const { bury, sender, progress, signal } = this.#options;
    const outcome = await this.#store(() => bury(record, reason));
    if (outcome === undefined) return undefined;
    if (outcome.result !== 'share_full') return outcome.result === 'full' ? 'held' : 'kept';
    return (await isTakingOthers([record], sender, progress, signal)) ? 'dropped' : 'held';
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
        await sleep(failureMs, signal);
      }
    }
    return undefined;
  }

  /** What comes meanwhile shares the next batch. */
  async #linger(batch: SourceBatch): Promise<void> {
    const { forwarder, signal } = this.#options;
    const { lingerMilliseconds, batchRecordsMax } = forwarder;
    if (lingerMilliseconds === 0 || batch.records.length >= batchRecordsMax) return;
    await sleep(lingerMilliseconds, signal);
  }
}
