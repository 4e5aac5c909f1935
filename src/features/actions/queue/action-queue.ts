import { isWithinShare } from '../../../core/fair-share.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import { RateLimiter } from '../../../core/rate-limiter.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import type { ActionConfig } from '../config.ts';
import type { Action, ActionVersion } from '../declaration/action.ts';
import type { StoredActionDeadLetter } from '../outbox/dead-letters.ts';
import type { History } from '../runs/history.ts';
import { type ActionJournal, actionKey, carriedKey } from '../tables.ts';
import { InHand, type PendingRun } from './in-hand.ts';
import { Intake } from './intake.ts';
import type { Claimant } from './schedule.ts';
import { Trigger } from './trigger.ts';

/** How many runs of one action are parked, of each device and in all. */
export class DeadLetterCount {
  readonly #of = new Map<DeviceKey, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  of(device: DeviceKey): number {
    return this.#of.get(device) ?? 0;
  }

  change(device: DeviceKey, change: number): void {
    const count = this.of(device) + change;
    if (count > 0) this.#of.set(device, count);
    else this.#of.delete(device);
    this.#total += change;
  }
}

/** The same of all actions that have run: counted on disk once, for that takes a look at each. */
export class DeadLetterCounts {
  readonly #parked: History<StoredActionDeadLetter>;
  readonly #counts = new Map<string, DeadLetterCount>();

  constructor(parked: History<StoredActionDeadLetter>) {
    this.#parked = parked;
  }

  of(action: Buffer): DeadLetterCount {
    const id = action.toString('hex');
    const known = this.#counts.get(id);
    if (known !== undefined) return known;
    const counted = new DeadLetterCount();
    for (const { record } of this.#parked.all(action)) counted.change(record.device, 1);
    this.#counts.set(id, counted);
    return counted;
  }

  /** Once it is on disk. */
  change(action: Buffer, device: DeviceKey, change: number): void {
    this.#counts.get(action.toString('hex'))?.change(device, change);
  }

  forget(action: Buffer): void {
    this.#counts.delete(action.toString('hex'));
  }
}

const bucketMs = 10_000;
const buckets = 6;

/** How often one action runs: bounded to a rate, and counted over the last minute. */
class Pace {
  readonly #rate: () => number;
  readonly #limiter = new RateLimiter(1);
  readonly #counts = new Float64Array(buckets);
  #bucket = 0;

  /** `rate`: runs a second, as many at once after a second without any. */
  constructor(rate: () => number) {
    this.#rate = rate;
  }

  /** Whether another run may start now. */
  get isOpen(): boolean {
    return this.#limiter.wait(this.#rate()) === 0;
  }

  take(): void {
    this.#limiter.spend(this.#rate());
    this.#turn();
    this.#counts[this.#bucket % buckets] = (this.#counts[this.#bucket % buckets] ?? 0) + 1;
  }

  get lastMinute(): number {
    this.#turn();
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  #turn(): void {
    const now = Math.floor(performance.now() / bucketMs);
    for (let next = Math.max(this.#bucket + 1, now - buckets + 1); next <= now; next += 1) {
      this.#counts[next % buckets] = 0;
    }
    this.#bucket = now;
  }
}

export interface ActionQueueOptions {
  config: ActionConfig;
  journal: ActionJournal;
  /** Of each shard: where its log ends now. */
  logEnds: readonly number[];
  /** Its parked runs. */
  parked: DeadLetterCount;
  /** How many runs there are of which mails are on their way, each of which may be parked still. */
  onTheirWay(): number;
  devicesBehindMax?: number;
}

/**
 * Devices of one action whose records wait while those of others pass: each has a place on disk and is read for anew. An
 * action that fails for more is broken, and waits.
 */
const devicesBehindDefault = 100;

/**
 * One version of one action on its way through the logs. What it has in hand is bounded; all else waits in the
 * log, which is its queue. In hand, the records of a device wait for each other, and devices do not.
 */
export class ActionQueue implements Claimant {
  readonly action: Action;
  readonly fleetId: string;
  readonly version: ActionVersion;
  readonly id: Buffer;
  readonly pace: Pace;
  readonly intake: Intake;
  /** Set when another lane takes over from what is on disk: nothing of this one is to be stored any more. */
  isStopped = false;
  readonly #options: ActionQueueOptions;
  readonly #inHand: InHand;
  /** Runs that are under way, and may be parked. */
  #undecided = 0;

  constructor(action: Action, version: ActionVersion, options: ActionQueueOptions) {
    const { config, journal, logEnds, devicesBehindMax = devicesBehindDefault } = options;
    this.action = action;
    this.fleetId = action.fleetId;
    this.version = version;
    this.#options = options;
    this.id = actionKey(action.id);
    this.pace = new Pace(() => action.runsPerSecondMax ?? config.actionRunsPerSecondMax);
    this.#inHand = new InHand(
      () => config.actionQueueMax,
      (run) => this.#mayStart(run),
    );
    this.intake = new Intake({
      config,
      journal,
      logEnds,
      action: this.id,
      devicesBehindMax,
      trigger: new Trigger(action, version, config),
      inHand: this.#inHand,
      mayTake: () => !this.isStopped && this.parked < config.actionParkedRunsMax,
      take: (shard, record) => this.#inHand.push(this.#firstTry(shard, record)),
    });
  }

  get parked(): number {
    return this.#options.parked.total;
  }

  get inHand(): number {
    return this.#inHand.size;
  }

  /** Devices of which records wait while those of others pass: behind in the log, or for their parked runs to go. */
  get devicesBehind(): number {
    const devices = new Set(this.#inHand.blocked());
    for (const device of this.intake.devicesBehind()) devices.add(device);
    return devices.size;
  }

  /** Why it takes nothing from the logs, or runs nothing of what it has taken. */
  get held(): 'parked_full' | 'devices_full' | 'limited' | undefined {
    const { actionParkedRunsMax } = this.#options.config;
    if (this.parked >= actionParkedRunsMax || this.#inHand.isBlocked) return 'parked_full';
    if (this.intake.isHeld) return 'devices_full';
    return this.pace.isOpen ? undefined : 'limited';
  }

  /** A parked run, once at a time. False when it is being tried already. */
  retry(parked: number, record: StoredRecord): boolean {
    return this.#inHand.pushRetry({ ...this.#firstTry(undefined, record), parked });
  }

  /** Whether a run could start now, but for a thread. */
  hasReady(nowMs: number): boolean {
    return !this.isStopped && this.pace.isOpen && this.#inHand.hasReady(nowMs);
  }

  next(): PendingRun | undefined {
    const run = this.#inHand.next();
    if (run === undefined) return undefined;
    this.pace.take();
    // One that was parked is counted there for as long as it may be parked again.
    if (run.parked === undefined) this.#undecided += 1;
    return run;
  }

  /** What became of it is on disk, and counted: it is parked, its mails are in the outbox, or there is nothing to do. */
  decided({ parked }: PendingRun): void {
    if (parked === undefined) this.#undecided -= 1;
  }

  /** For another attempt; what else there is of its device waits behind it. */
  delay(run: PendingRun, milliseconds: number): void {
    this.decided(run);
    this.#inHand.delay(run, milliseconds);
  }

  /** Inside a write transaction: the record is done, whatever came of it. */
  store({ shard, record }: PendingRun): void {
    if (shard === undefined) return;
    this.intake.finish(shard, record);
    if (record.isRelocated) this.#options.journal.tables.carried.removeSync(carriedKey(this.id, record.id));
  }

  /** Its mails are where they belong: the next record of its device may run. */
  finish(run: PendingRun): void {
    this.#inHand.finish(run);
  }

  #firstTry(shard: number | undefined, record: StoredRecord): PendingRun {
    return { record, shard, parked: undefined, attempt: 1, conflicts: 0, dueMs: 0 };
  }

  /**
   * Whether a run may start: not before there is room for its being parked, which holds for its refused mails too. The
   * runs of one device are parked up to its share, and then wait for some of those to be retried or dropped.
   */
  #mayStart({ parked: number, record: { device } }: PendingRun): boolean {
    if (number !== undefined) return true;
    const { config, parked, onTheirWay } = this.#options;
    const used = parked.total + this.#undecided + onTheirWay();
    return isWithinShare(config.actionParkedRunsMax, used, parked.of(device));
  }
}
