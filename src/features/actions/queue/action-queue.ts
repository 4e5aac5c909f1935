import { RateLimiter } from '../../../core/rate-limiter.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import type { ActionConfig } from '../config.ts';
import type { Action, ActionVersion } from '../declaration/action.ts';
import type { ActionDeadLetters } from '../outbox/dead-letters.ts';
import { type ActionJournal, actionKey } from '../tables.ts';
import { InHand, type PendingRun } from './in-hand.ts';
import { Intake } from './intake.ts';
import type { Claimant } from './schedule.ts';
import { Trigger } from './trigger.ts';

/** Rate limit of one action. */
class RunRate {
  readonly #rate: () => number;
  readonly #limiter = new RateLimiter(1);

  /** `rate`: runs per second, and the burst after a second without any. */
  constructor(rate: () => number) {
    this.#rate = rate;
  }

  /** True if the rate allows another run now. */
  get isOpen(): boolean {
    return this.#limiter.wait(this.#rate()) === 0;
  }

  take(): void {
    this.#limiter.spend(this.#rate());
  }
}

export interface ActionQueueOptions {
  config: ActionConfig;
  journal: ActionJournal;
  /** The end of each shard's log now. */
  logEnds: readonly number[];
  deadLetters: ActionDeadLetters;
  /** Number of runs whose mails are in flight, each of which may still become a dead letter. */
  inFlight(): number;
  devicesBehindMax?: number;
}

/**
 * Maximum devices of one action that lag while others pass: each has a cursor of its own on disk and reads the log
 * anew. An action that fails for more is broken, and waits.
 */
const devicesBehindDefault = 100;

/**
 * Works through the logs for one version of one action. What is in hand is bounded; everything else waits in the log,
 * which is the queue. In hand, the records of a device run in sequence, devices in parallel.
 */
export class ActionQueue implements Claimant {
  readonly action: Action;
  readonly fleetId: string;
  readonly version: ActionVersion;
  readonly id: Buffer;
  readonly rate: RunRate;
  readonly intake: Intake;
  /** Set when another queue takes over from the state on disk; nothing of this one may be stored any more. */
  isStopped = false;
  readonly #options: ActionQueueOptions;
  readonly #inHand: InHand;
  /** Runs under way, each of which may become a dead letter. */
  #undecided = 0;

  constructor(action: Action, version: ActionVersion, options: ActionQueueOptions) {
    const { config, journal, logEnds, devicesBehindMax = devicesBehindDefault } = options;
    this.action = action;
    this.fleetId = action.fleetId;
    this.version = version;
    this.#options = options;
    this.id = actionKey(action.id);
    this.rate = new RunRate(() => action.runsPerSecondMax ?? config.settings.current.actionRunsPerSecondMax);
    this.#inHand = new InHand(
      () => config.settings.current.actionQueueMax,
      (run) => this.#mayStart(run),
    );
    this.intake = new Intake({
      config,
      journal,
      logEnds,
      action: this.id,
      devicesBehindMax,
      trigger: new Trigger(action, version, config.settings),
      inHand: this.#inHand,
      mayTake: () => !this.isStopped && !this.#options.deadLetters.isFull(this.id),
      take: (shard, record) => this.#inHand.push(this.#firstTry(shard, record)),
    });
  }

  get inHand(): number {
    return this.#inHand.size;
  }

  /** Devices whose records wait while those of others pass: behind in the log, or blocked by their dead letters. */
  get devicesBehind(): number {
    const devices = new Set(this.#inHand.blocked());
    for (const device of this.intake.devicesBehind()) devices.add(device);
    return devices.size;
  }

  /** Devices whose records wait until some of their own dead letters are gone. */
  get devicesBlocked(): number {
    const { deadLetters } = this.#options;
    return [...this.#inHand.blocked()].filter((device) => !deadLetters.hasRoomFor(this.id, device)).length;
  }

  /** Why no records run, of whatever device. */
  get held(): 'dead_letters_full' | 'devices_full' | 'limited' | undefined {
    if (this.#options.deadLetters.isFull(this.id)) return 'dead_letters_full';
    if (this.intake.isHeld) return 'devices_full';
    return this.rate.isOpen ? undefined : 'limited';
  }

  /** Queues a replay of a dead letter. Returns false if one is under way already. */
  replay(deadLetter: number, record: StoredRecord): boolean {
    return this.#inHand.pushReplay({ ...this.#firstTry(undefined, record), deadLetter });
  }

  /** True if a run could start now if a thread were free. */
  hasReady(nowMs: number): boolean {
    return !this.isStopped && this.rate.isOpen && this.#inHand.hasReady(nowMs);
  }

  next(): PendingRun | undefined {
    const run = this.#inHand.next();
    if (run === undefined) return undefined;
    this.rate.take();
    // A replayed dead letter stays counted as one until its run has succeeded.
    if (run.deadLetter === undefined) this.#undecided += 1;
    return run;
  }

  /** Call once the result of the run is on disk and counted: a dead letter, mails in the outbox, or nothing to do. */
  decided({ deadLetter }: PendingRun): void {
    if (deadLetter === undefined) this.#undecided -= 1;
  }

  /** Schedules another attempt; further records of its device wait behind it. */
  delay(run: PendingRun, milliseconds: number): void {
    this.decided(run);
    this.#inHand.delay(run, milliseconds);
  }

  /** Marks the record done, whatever the outcome, inside a write transaction. */
  store({ shard, record }: PendingRun): void {
    if (shard !== undefined) this.intake.finish(shard, record);
  }

  /** Call once the mails are delivered: the next record of the device may run. */
  finish(run: PendingRun): void {
    this.#inHand.finish(run);
  }

  #firstTry(shard: number | undefined, record: StoredRecord): PendingRun {
    return { record, shard, deadLetter: undefined, attempt: 1, conflicts: 0, dueMs: 0 };
  }

  /**
   * True if there is room for the run to become a dead letter, also by refused mails. The dead letters of one device
   * are bounded by its share; beyond it, its runs wait until some are replayed or dropped.
   */
  #mayStart({ deadLetter: number, record: { device } }: PendingRun): boolean {
    if (number !== undefined) return true;
    const { deadLetters, inFlight } = this.#options;
    return deadLetters.hasRoomFor(this.id, device, this.#undecided + inFlight());
  }
}
