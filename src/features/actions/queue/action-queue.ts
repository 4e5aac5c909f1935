import type { DeviceKey } from '../../../core/identity.ts';
import { RateLimiter } from '../../../core/limits/rate-limiter.ts';
import type { Device } from '../../../domain/devices/device.ts';
import type { LogPage, StoredRecord } from '../../../domain/records/record.ts';
import type { ActionConfig } from '../config.ts';
import type { Action, RunningVersion } from '../declaration/action.ts';
import { Trigger, type TriggerWatch } from '../declaration/trigger.ts';
import type { ActionDeadLetters } from '../outbox/dead-letters.ts';
import { type ActionJournal, actionKey } from '../tables.ts';
import { InHand, type PendingRun } from './in-hand.ts';
import { LogProgress } from './progress.ts';
import type { Claimant } from './schedule.ts';

/**
 * Maximum devices of one action that lag while others pass: each has a cursor of its own on disk and reads the log
 * anew. An action that fails for more is broken, and waits.
 */
const devicesBehindDefault = 100;

/**
 * Share of the records in hand that must be free before a page is read, since a page is decoded whole however few of
 * its records fit.
 */
const roomShareMin = 1 / 16;

export interface ActionQueueOptions extends Pick<TriggerWatch, 'checks' | 'payloads'> {
  config: ActionConfig;
  journal: ActionJournal;
  /** The end of each shard's log now. */
  logEnds: readonly number[];
  deadLetters: ActionDeadLetters;
  /** Number of runs whose mails are in flight, each of which may still become a dead letter. */
  inFlight(): number;
  /** Called once when its payload filter is disabled: no record is taken from then on. */
  onFilterDisabled?: (reason: string) => void;
  devicesBehindMax?: number;
}

/** Devices of a page that were asked for, as they are now. */
type Senders = ReadonlyMap<DeviceKey, Device | undefined>;

/**
 * Works through the logs for one version of one action. What is in hand is bounded; everything else waits in the log,
 * which is the queue. The way of a record:
 *
 *                  offer            next              store            finish
 *     in the log ────────► ready ─────────► running ────────► stored ────────► gone
 *          │                │ ▲              │   ▲
 *    offer │       makeRoom │ │ offerAgain   │   │ next, once it is due
 *          │                ▼ │        delay ▼   │
 *          └─────────────► behind ◄──────── delayed
 *                                 makeRoom
 *
 * - ready, delayed: of each device only the first record may start, devices run in parallel (`InHand`). A device that has
 *   used its share of the dead letters is blocked: its first record stays ready.
 * - behind: the device has used its share of the records in hand and makes no progress, so the others pass. It has a cursor
 *   of its own, from which its records are read again once there is room (`LogProgress`).
 * - stored: done on disk, whatever the outcome, while its mails are delivered. A kill takes a record back to the log from
 *   any state before.
 *
 * A replayed dead letter enters at ready, ahead of the records of its device, and is in no log.
 */
export class ActionQueue implements Claimant {
  readonly action: Action;
  readonly fleetId: string;
  readonly version: RunningVersion;
  readonly id: Buffer;
  /** The progress in the log of each shard. */
  readonly progress: readonly LogProgress[];
  /** Set when another queue takes over from the state on disk; nothing of this one may be stored any more. */
  isStopped = false;
  readonly #options: ActionQueueOptions;
  readonly #devicesBehindMax: number;
  readonly #trigger: Trigger;
  readonly #inHand: InHand;
  readonly #rate = new RateLimiter(1);
  /** Runs under way, each of which may become a dead letter. */
  #undecided = 0;
  /** Set while the log holds more than there was room for. */
  #isFull = false;
  /** The device that could not be left behind, since all cursors were in use. */
  #lacksCursor: DeviceKey | undefined;

  constructor(action: Action, version: RunningVersion, options: ActionQueueOptions) {
    const { config, journal, logEnds, devicesBehindMax = devicesBehindDefault } = options;
    this.action = action;
    this.fleetId = action.fleetId;
    this.version = version;
    this.#options = options;
    this.#devicesBehindMax = devicesBehindMax;
    this.id = actionKey(action.id);
    this.#trigger = new Trigger(action, version, config.settings, {
      ...options,
      onDisabled: options.onFilterDisabled,
    });
    this.#inHand = new InHand(
      () => this.#recordsMax,
      (run) => this.#mayStart(run),
    );
    journal.refresh();
    this.progress = logEnds.map((end, shard) => new LogProgress(journal, this.id, shard, end));
  }

  get inHand(): number {
    return this.#inHand.size;
  }

  /** Devices whose records wait while those of others pass: behind in the log, or blocked by their dead letters. */
  get devicesBehind(): number {
    const devices = new Set(this.#inHand.blocked());
    for (const { behind } of this.progress) for (const [device] of behind.passed()) devices.add(device);
    return devices.size;
  }

  /** Devices whose records wait until some of their own dead letters are gone. */
  get devicesBlocked(): number {
    const { deadLetters } = this.#options;
    return [...this.#inHand.blocked()].filter((device) => !deadLetters.hasRoomFor(this.id, device)).length;
  }

  /** Why no records run, of whatever device. */
  get held(): 'dead_letters_full' | 'filter_disabled' | 'devices_full' | 'limited' | undefined {
    if (this.#options.deadLetters.isFull(this.id)) return 'dead_letters_full';
    if (this.#trigger.isDisabled) return 'filter_disabled';
    if (this.#isHeldByDevices) return 'devices_full';
    return this.#isRateOpen && !this.#trigger.mustWait ? undefined : 'limited';
  }

  /** Call before a poll. When no further record fits in hand, returns what cannot run now to the log. */
  makeRoom(): void {
    if (!this.#hasRoomForPage) this.#putBack();
  }

  /**
   * True if the log of that shard is to be scanned further. After a start the backlog is scanned shard by shard: the
   * records of a relocated device lie in two logs, and the lower shard has the older ones.
   */
  wants(shard: number): boolean {
    if (!this.#mayTake || this.#isHeldByDevices || !this.#hasRoomForPage) return false;
    const first = this.#shardBehind;
    return first === undefined || first === shard;
  }

  /** True if deciding on this record needs its device. */
  asksForDevice(record: StoredRecord): boolean {
    return this.#trigger.asksForTags(record);
  }

  /** Takes the action's records from a page of the log, as far as there is room. `senders`: those asked for. */
  offer(shard: number, page: LogPage, senders: Senders): void {
    const progress = this.progress[shard];
    if (progress === undefined) return;
    const end = this.#shardBehind === undefined ? page.next : Math.min(page.next, this.#endAtStart(shard));
    for (const record of page.records) {
      const { position } = record;
      if (position >= end) break;
      progress.scanTo(position);
      if (position < progress.scanned) continue;
      // Advanced before matching the record, so that one that fails to match is skipped.
      progress.scanned = position + 1;
      if (this.#pass(shard, progress, record, senders)) continue;
      progress.scanned = position;
      this.#isFull = true;
      return;
    }
    progress.scanTo(end);
    this.#isFull = false;
  }

  /** Position to read the log of that shard again from, for devices that are behind and have room. */
  wantsAgain(shard: number): number | undefined {
    if (!this.#mayTake) return undefined;
    let from: number | undefined;
    for (const [device, next] of this.progress[shard]?.behind.passed() ?? []) {
      if ((from === undefined || next < from) && this.#mayCatchUp(shard, device)) from = next;
    }
    return from;
  }

  /** Like `offer`, for the devices that are behind, with a page from `from` on. */
  offerAgain(shard: number, from: number, page: LogPage, senders: Senders): void {
    const progress = this.progress[shard];
    if (progress === undefined) return;
    const { behind, scanned } = progress;
    const following = new Set<DeviceKey>();
    for (const [device, next] of behind.passed()) {
      // A device without room now keeps its cursor, and is read again from there.
      if (next >= from && next < page.next && !this.#isBehindBefore(shard, device)) following.add(device);
    }
    for (const record of page.records) {
      const { device, position } = record;
      if (position >= scanned) break;
      if (!following.has(device) || position < (behind.nextOf(device) ?? 0)) continue;
      behind.moveOn(device, position + 1);
      const mustWait = this.#trigger.mustWait;
      if (!mustWait && !this.#isFor(record, progress, senders.get(device))) continue;
      if (!mustWait && this.#inHand.hasRoomFor(device)) this.#take(shard, progress, record);
      else {
        behind.moveOn(device, position);
        following.delete(device);
      }
    }
    for (const device of following) behind.moveOn(device, page.next < scanned ? page.next : undefined);
  }

  /** Queues a replay of a dead letter. Returns false if one is under way already. */
  replay(deadLetter: number, record: StoredRecord): boolean {
    return this.#inHand.pushReplay({ ...firstTry(undefined, record), deadLetter });
  }

  /** True if a run could start now if a thread were free. */
  hasReady(nowMs: number): boolean {
    return !this.isStopped && this.#isRateOpen && this.#inHand.hasReady(nowMs);
  }

  next(): PendingRun | undefined {
    const run = this.#inHand.next();
    if (run === undefined) return undefined;
    this.#rate.spend(this.#runsPerSecond);
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
    const progress = shard === undefined ? undefined : this.progress[shard];
    if (progress === undefined) return;
    progress.finish(record);
    // Bounds what is done ahead of the position to the records in hand: beyond that, the device that holds it back gets
    // a cursor of its own.
    while (progress.ahead > this.#recordsMax) {
      const { first } = progress;
      if (first === undefined || !this.#leaveBehind(progress, first, undefined)) break;
    }
    progress.store();
  }

  /** Call once the mails are delivered: the next record of the device may run. */
  finish(run: PendingRun): void {
    this.#inHand.finish(run);
  }

  get #recordsMax(): number {
    return this.#options.config.settings.current.actionQueueMax;
  }

  get #runsPerSecond(): number {
    return this.action.runsPerSecondMax ?? this.#options.config.settings.current.actionRunsPerSecondMax;
  }

  get #isRateOpen(): boolean {
    return this.#rate.wait(this.#runsPerSecond) === 0;
  }

  /** True if records may be taken from the logs now. */
  get #mayTake(): boolean {
    return !this.isStopped && !this.#options.deadLetters.isFull(this.id) && !this.#trigger.mustWait;
  }

  get #hasFreeCursor(): boolean {
    return this.progress.reduce((sum, { behind }) => sum + behind.size, 0) < this.#devicesBehindMax;
  }

  /** True if nothing is taken until a device that is behind has caught up. */
  get #isHeldByDevices(): boolean {
    if (this.#hasFreeCursor) return false;
    if (this.progress.some(({ ahead }) => ahead > this.#recordsMax)) return true;
    return this.#lacksCursor !== undefined && !this.#inHand.hasRoomFor(this.#lacksCursor);
  }

  /**
   * True if a page may be read. After it was full, only with room for several records, counted against what devices
   * behind leave to the others.
   */
  get #hasRoomForPage(): boolean {
    const { free } = this.#inHand;
    if (!this.#isFull) return free > 0;
    const ofOthers = this.progress.reduce((sum, { behind }) => sum - behind.inHand, this.#recordsMax);
    return free >= Math.ceil(ofOthers * roomShareMin);
  }

  /** The first shard whose backlog from before the start is not scanned yet. */
  get #shardBehind(): number | undefined {
    const first = this.progress.findIndex(({ scanned }, shard) => scanned < this.#endAtStart(shard));
    return first < 0 ? undefined : first;
  }

  #endAtStart(shard: number): number {
    return this.#options.logEnds[shard] ?? 0;
  }

  /**
   * Takes the record if it is for this action. Returns false if there is no room, and waiting for some is worthwhile.
   */
  #pass(shard: number, progress: LogProgress, record: StoredRecord, senders: Senders): boolean {
    const { device, position } = record;
    if (progress.behind.nextOf(device) !== undefined) return true;
    if (this.#inHand.free === 0) this.#putBack();
    if (this.#inHand.free === 0 || this.#trigger.mustWait) return false;
    if (!this.#isFor(record, progress, senders.get(device))) return true;
    const waits = this.#isBehindBefore(shard, device);
    if (!waits && this.#inHand.hasRoomFor(device)) {
      this.#take(shard, progress, record);
      return true;
    }
    if (!waits && !this.#isSlow(device)) return false;
    const isLeft = this.#leaveBehind(progress, device, position);
    this.#lacksCursor = isLeft ? undefined : device;
    return isLeft;
  }

  #isFor(record: StoredRecord, progress: LogProgress, sender: Device | undefined): boolean {
    return !progress.isDone(record) && this.#trigger.matches(record, sender);
  }

  #take(shard: number, progress: LogProgress, record: StoredRecord): void {
    progress.take(record);
    this.#inHand.push(firstTry(shard, record));
  }

  /**
   * Returns records to the log: all but the first of each device that waits for an attempt or is blocked by its dead
   * letters.
   */
  #putBack(): void {
    for (let stuck = this.#inHand.stuck(); stuck.length > 0; stuck = this.#inHand.stuck()) {
      let count = 0;
      for (const run of stuck) {
        const { device, position } = run.record;
        const progress = run.shard === undefined ? undefined : this.progress[run.shard];
        if (progress === undefined || !this.#leaveBehind(progress, device, position)) continue;
        progress.behind.putBack(device, position);
        this.#inHand.putBack(run);
        count += 1;
      }
      if (count === 0) return;
    }
  }

  /** Returns false when all cursors are in use. */
  #leaveBehind(progress: LogProgress, device: DeviceKey, next: number | undefined): boolean {
    if (!progress.behind.has(device) && !this.#hasFreeCursor) return false;
    progress.leaveBehind(device, next);
    return true;
  }

  /**
   * True if the device is not to be waited for: it is stuck, or has much of all records in hand. Any other takes only
   * a moment.
   */
  #isSlow(device: DeviceKey): boolean {
    return this.#inHand.isStuck(device) || this.#inHand.of(device) >= this.#recordsMax * roomShareMin;
  }

  /** Waits for room for several records, as each time a page is read and decoded. */
  #mayCatchUp(shard: number, device: DeviceKey): boolean {
    if (this.#isBehindBefore(shard, device)) return false;
    const own = this.#inHand.of(device);
    if (own === 0) return this.#inHand.free > 0;
    return !this.#inHand.isStuck(device) && 2 * own <= this.#inHand.free;
  }

  /** True if older records of the device wait in the log of a lower shard, from which it was relocated. */
  #isBehindBefore(shard: number, device: DeviceKey): boolean {
    return this.progress.slice(0, shard).some(({ behind }) => behind.nextOf(device) !== undefined);
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

function firstTry(shard: number | undefined, record: StoredRecord): PendingRun {
  return { record, shard, deadLetter: undefined, attempt: 1, conflicts: 0, dueMs: 0 };
}
