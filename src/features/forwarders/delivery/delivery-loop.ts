import { sleep } from '../../../core/async.ts';
import { isUnavailable } from '../../../core/errors.ts';
import { deviceIdOf } from '../../../core/identity.ts';
import { MinuteRing, minuteOf } from '../../../core/minute-ring.ts';
import { type Log, logFailure } from '../../../core/telemetry/log.ts';
import type { Hold } from '../../../domain/hold.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import type { Forwarder } from '../declaration/forwarder.ts';
import type { DeadLetterOutcome } from '../forwarder-dead-letters.ts';
import type { ForwarderHour } from '../forwarder-work.ts';
import { LinkedAbort } from '../senders/linked-abort.ts';
import type { Outcome, Sender } from '../senders/sender.ts';
import type { ByteBudget } from './byte-budget.ts';
import type { Source, SourceBatch } from './source.ts';

const minutesKept = 60;
/** What is counted of each minute: records delivered, in failed attempts, and refused. */
const hourColumns = { delivered: 0, failed: 1, refused: 2 };

/** Counters and errors of one forwarder since the server started. */
export class ForwarderStats {
  readonly counts = { delivered: 0, failed: 0, dead: 0, dropped: 0 };
  readonly #firstMinute = minuteOf(Date.now());
  readonly #minutes = new MinuteRing(minutesKept, [0, 0, 0], this.#firstMinute);
  lastError: { atMs: number; msg: string; recoveredAtMs: number | undefined } | undefined;
  lastDeliveredAtMs: number | undefined;
  /** Some of the last accepted records, by device, to probe whether the destination accepts anything. */
  readonly accepted = new Map<string, StoredRecord>();
  /** When each loop in backoff tries again, in Unix milliseconds. */
  readonly nextAttempts = new Map<DeliveryLoop, number>();
  /** Loops waiting because the dead letters are full. */
  blocked = 0;

  delivered(records: number): void {
    this.counts.delivered += records;
    this.#inMinute('delivered', records);
    this.lastDeliveredAtMs = Date.now();
    if (this.lastError !== undefined) this.lastError.recoveredAtMs ??= this.lastDeliveredAtMs;
  }

  /** Counts an attempt that is retried. */
  failed(records: number, msg: string): void {
    this.counts.failed += records;
    this.#inMinute('failed', records);
    this.#failedWith(msg);
  }

  /** Counts a record that is not sent again, dead-lettered or dropped. */
  dead(msg: string, isStored: boolean): void {
    this.counts[isStored ? 'dead' : 'dropped'] += 1;
    this.#inMinute('refused', 1);
    this.#failedWith(msg);
  }

  /** The last hour, by minute. */
  hour(): ForwarderHour {
    const { fromMs, minutes } = this.#minutes.since(this.#firstMinute, minuteOf(Date.now()));
    const column = (name: keyof typeof hourColumns): number[] =>
      minutes.map((cells) => cells[hourColumns[name]] ?? 0);
    return {
      fromMs,
      delivered: column('delivered'),
      failed: column('failed'),
      refused: column('refused'),
    };
  }

  #inMinute(name: keyof typeof hourColumns, records: number): void {
    const cells = this.#minutes.at(minuteOf(Date.now()));
    const at = hourColumns[name];
    cells[at] = (cells[at] ?? 0) + records;
  }

  #failedWith(msg: string): void {
    this.lastError = { atMs: Date.now(), msg, recoveredAtMs: undefined };
  }
}

/** Devices per forwarder whose last record is remembered, and its largest payload. */
const rememberedDevicesMax = 3;
const rememberedBytesMax = 1_024;
/** Devices whose first record is probed while none was accepted yet. */
const devicesMax = 8;

/** Copies the last accepted record: the buffer it came in may be large. */
function rememberAccepted({ accepted }: ForwarderStats, records: readonly StoredRecord[]): void {
  const last = records.at(-1);
  if (last === undefined || last.payload.length > rememberedBytesMax) return;
  // Re-insert, so that the newest comes last.
  accepted.delete(last.device);
  accepted.set(last.device, { ...last, id: Buffer.from(last.id), payload: Buffer.from(last.payload) });
  for (const oldest of accepted.keys()) {
    if (accepted.size <= rememberedDevicesMax) break;
    accepted.delete(oldest);
  }
}

/**
 * Resolves to true if the destination accepts other records while these fail: then it is not down, and one of them is
 * the cause. Sends the last accepted records again or, if there are none since the start, the first record of some
 * devices, which keeps the order per device.
 */
async function isAcceptingOthers(
  records: readonly StoredRecord[],
  sender: Sender,
  stats: ForwarderStats,
  signal: AbortSignal,
): Promise<boolean> {
  const known = [...stats.accepted.values()].reverse();
  for (const record of known.length === 0 ? firstOfDevices(records) : known) {
    if (signal.aborted) return false;
    const { result } = await sender.send([record], signal, { isAgain: true });
    if (result !== 'delivered') continue;
    rememberAccepted(stats, [record]);
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
  // A record alone proves nothing about itself.
  return records.length === 1 ? [] : [...first.values()];
}

interface BackoffLimits {
  firstMs: number;
  longestMs: number;
}

/**
 * Backoff after an attempt, counted from 1: doubles each time, jittered in its upper half so that loops that failed
 * together do not retry together. The receiver's Retry-After applies where it is longer.
 */
export function backoffMs(attempt: number, { firstMs, longestMs }: BackoffLimits, retryAfterMs = 0): number {
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
  stats: ForwarderStats;
  log: Log;
  /** Stores a refused record. @throws ApiError unavailable. */
  deadLetter(record: StoredRecord, reason: string): Promise<DeadLetterOutcome>;
  hold: Hold;
  signal: AbortSignal;
}

/**
 * Attempts with the same error, while another record is accepted, before a batch is bisected; and those of a single
 * record before it becomes a dead letter. Half a minute in all with the backoff between them, so that a short fault of the
 * receiver costs no record.
 */
const sameErrorsMax = 5;
/** Delay before retrying a failed read or write, and before checking again whether dead letters are full. */
const retryMs = 1_000;
/** Approximate size of a record besides its payload. */
const recordOverheadBytes = 256;

/**
 * Delivers one source to the destination, one batch after another, which keeps the order of the source. Acknowledges
 * a batch once every record of it is delivered, dead-lettered or dropped, and never before.
 */
export class DeliveryLoop {
  readonly #options: DeliveryLoopOptions;
  /** Consecutive failed attempts. */
  #failures = 0;
  /** The destination's last error, and how many consecutive attempts got it. */
  #lastError: string | undefined;
  #sameErrors = 0;
  #resumeAtMs = 0;
  /** Size of a batch that was released in backoff, to read the same batch again. */
  #retryRecords: number | undefined;
  /** Record that is retried alone, and how often it failed alone. */
  #alone: { id: Uint8Array; reason: string; attempts: number } | undefined;

  constructor(options: DeliveryLoopOptions) {
    this.#options = options;
  }

  /** Runs until the signal aborts; never throws. */
  async run(): Promise<void> {
    const { source, hold, signal, log, forwarder } = this.#options;
    const { fleetId, name, batchRecordsMax } = forwarder;
    while (!signal.aborted) {
      try {
        await sleep(this.#resumeAtMs - performance.now(), signal);
        await hold.released(signal);
        const batch = await source.fetch(this.#retryRecords ?? batchRecordsMax, signal);
        // Consumers stop a little before the signal.
        if (batch === undefined) await sleep(retryMs, signal);
        else if (await this.#forward(batch)) await this.#linger(batch);
      } catch (error) {
        logFailure(log, error, 'forwarder delivery failed; retrying', { fleet: fleetId, forwarder: name });
        this.#resumeAtMs = performance.now() + retryMs;
      }
    }
  }

  /** Returns whether the batch was acknowledged. */
  async #forward(batch: SourceBatch): Promise<boolean> {
    const { budget, signal, forwarder } = this.#options;
    const { fleetId } = forwarder;
    const bytes = batch.records.reduce((sum, { payload }) => sum + payload.length + recordOverheadBytes, 0);
    if (!budget.take(fleetId, bytes)) {
      batch.release();
      await budget.freed(fleetId, bytes, signal);
      return false;
    }
    let isDone = false;
    try {
      if (await this.#deliver(batch.records))
        isDone = (await this.#store(() => batch.acknowledge())) !== undefined;
      this.#retryRecords = isDone ? undefined : batch.records.length;
    } finally {
      if (!isDone) batch.release();
      budget.release(fleetId, bytes);
    }
    return isDone;
  }

  /**
   * Tries until the records are delivered or dead-lettered; false if the loop must release them before. Bisects a
   * refused batch to find the record at fault, and so one that gets the same error again and again while the
   * destination accepts another record.
   */
  async #deliver(records: readonly StoredRecord[]): Promise<boolean> {
    const { sender, stats, signal } = this.#options;
    while (!signal.aborted) {
      const outcome = await this.#send(records);
      if (outcome === undefined) return false;
      if (outcome.result === 'delivered') return true;
      if (outcome.result === 'refused') return this.#refuse(records, outcome.reason);
      if (this.#sameErrors >= sameErrorsMax && (await isAcceptingOthers(records, sender, stats, signal))) {
        return this.#bisect(records, outcome.reason);
      }
      if (!(await this.#backOff(outcome.retryAfterMs))) return false;
    }
    return false;
  }

  /** Returns undefined when the server stops or is held: the attempt counts neither way, and is repeated. */
  async #send(records: readonly StoredRecord[]): Promise<Outcome | undefined> {
    const { sender, stats, hold, signal } = this.#options;
    if (hold.isHeld) return undefined;
    const outcome = await sender.send(records, signal);
    if (outcome.result === 'delivered') {
      stats.delivered(records.length);
      rememberAccepted(stats, records);
    } else if (signal.aborted) return undefined;
    const answer = outcome.result === 'failed' && outcome.isAnswer ? outcome.reason : undefined;
    this.#sameErrors = answer === undefined ? 0 : answer === this.#lastError ? this.#sameErrors + 1 : 1;
    this.#lastError = answer;
    if (outcome.result === 'failed') stats.failed(records.length, outcome.reason);
    else this.#failures = 0;
    return outcome;
  }

  async #refuse(records: readonly StoredRecord[], reason: string): Promise<boolean> {
    const [only] = records;
    if (records.length === 1 && only !== undefined) return this.#deadLetter(only, reason);
    return this.#inHalves(records, (half) => this.#deliver(half));
  }

  /** Bisects records of which one is the cause, since others are accepted; delivers the rest in order. */
  async #bisect(records: readonly StoredRecord[], reason: string): Promise<boolean> {
    const [only] = records;
    if (records.length === 1 && only !== undefined) return this.#retryAlone(only, reason);
    return this.#inHalves(records, async (half) => {
      const outcome = await this.#send(half);
      if (outcome === undefined) return false;
      if (outcome.result === 'delivered') return true;
      if (outcome.result === 'refused') return this.#refuse(half, outcome.reason);
      if (outcome.isAnswer && outcome.reason === reason) return this.#bisect(half, reason);
      return (await this.#backOff(outcome.retryAfterMs)) && this.#deliver(half);
    });
  }

  /**
   * Retries a record alone, in backoff as a batch is; dead-letters it if another record is accepted right after the
   * last failure. The attempts count on when the batch had to be released in between.
   */
  async #retryAlone(record: StoredRecord, reason: string): Promise<boolean> {
    const { sender, stats, signal } = this.#options;
    const known = this.#alone;
    const isKnown = known?.reason === reason && record.id.equals(known.id);
    const alone = isKnown ? known : { id: Buffer.from(record.id), reason, attempts: 1 };
    // Others are accepted, so its own backoff begins anew.
    if (!isKnown) this.#failures = 0;
    this.#alone = alone;
    for (; alone.attempts < sameErrorsMax; alone.attempts += 1) {
      if (!(await this.#backOff(undefined))) return false;
      const outcome = await this.#send([record]);
      if (outcome === undefined) return false;
      if (outcome.result === 'delivered') return true;
      if (outcome.result === 'refused') return this.#deadLetter(record, outcome.reason);
      const isSame = outcome.isAnswer === true && outcome.reason === reason;
      if (!isSame) return (await this.#backOff(outcome.retryAfterMs)) && this.#deliver([record]);
    }
    if (await isAcceptingOthers([record], sender, stats, signal)) return this.#deadLetter(record, reason);
    return (await this.#backOff(undefined)) && this.#deliver([record]);
  }

  async #inHalves(
    records: readonly StoredRecord[],
    handle: (half: readonly StoredRecord[]) => Promise<boolean>,
  ): Promise<boolean> {
    const middle = records.length >> 1;
    return (await handle(records.slice(0, middle))) && (await handle(records.slice(middle)));
  }

  /** Returns false if another loop needs the bytes meanwhile; the batch is read again after the backoff. */
  async #backOff(retryAfterMs: number | undefined): Promise<boolean> {
    const { budget, backoff, stats, signal } = this.#options;
    this.#failures += 1;
    const waitMs = backoffMs(this.#failures, backoff, retryAfterMs);
    this.#resumeAtMs = performance.now() + waitMs;
    stats.nextAttempts.set(this, Date.now() + waitMs);
    using linked = new LinkedAbort(signal);
    const isOver = await Promise.race([
      sleep(waitMs, linked.signal).then(() => true),
      budget.wanted(linked.signal).then(() => false),
    ]);
    stats.nextAttempts.delete(this);
    return isOver && !signal.aborted;
  }

  /** Returns false if the loop must release the record before it could be stored. */
  async #deadLetter(record: StoredRecord, reason: string): Promise<boolean> {
    const { stats, signal } = this.#options;
    let outcome = await this.#put(record, reason);
    const isBlocked = outcome === 'full';
    if (isBlocked) stats.blocked += 1;
    while (outcome === 'full' && !signal.aborted) {
      await sleep(retryMs, signal);
      outcome = await this.#put(record, reason);
    }
    if (isBlocked) stats.blocked -= 1;
    if (outcome === undefined || outcome === 'full') return false;
    stats.dead(reason, outcome === 'stored');
    return true;
  }

  /**
   * Drops a refused record of a device with its full share of dead letters, so that it does not stop the others, as long
   * as another record is accepted. If none is, the destination is at fault, and nothing is dropped.
   */
  async #put(record: StoredRecord, reason: string): Promise<'stored' | 'dropped' | 'full' | undefined> {
    const { deadLetter, sender, stats, signal } = this.#options;
    const outcome = await this.#store(() => deadLetter(record, reason));
    if (outcome === undefined) return undefined;
    if (outcome.result !== 'share_full') return outcome.result === 'full' ? 'full' : 'stored';
    return (await isAcceptingOthers([record], sender, stats, signal)) ? 'dropped' : 'full';
  }

  /**
   * Retries until durable, while the disk is full for example, so that delivered records are not sent again for it.
   * Returns undefined if aborted first.
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
          log.warn({ err: error, fleet: fleetId, forwarder: name }, 'forwarder cursor not stored; retrying');
        }
        await sleep(retryMs, signal);
      }
    }
    return undefined;
  }

  /** Waits, so that records stored meanwhile share the next batch. */
  async #linger(batch: SourceBatch): Promise<void> {
    const { forwarder, signal } = this.#options;
    const { lingerMilliseconds, batchRecordsMax } = forwarder;
    if (lingerMilliseconds === 0 || batch.records.length >= batchRecordsMax) return;
    await sleep(lingerMilliseconds, signal);
  }
}
