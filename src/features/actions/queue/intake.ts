import type { DeviceKey } from '../../../core/identity.ts';
import type { Device } from '../../../domain/devices/device.ts';
import type { LogPage, StoredRecord } from '../../../domain/records/record.ts';
import type { ActionConfig } from '../config.ts';
import type { ActionJournal } from '../tables.ts';
import type { InHand } from './in-hand.ts';
import { QueueProgress } from './queue-progress.ts';
import type { Trigger } from './trigger.ts';

/**
 * Share of the records in hand that must be free before a page is read, since a page is decoded whole however few of
 * its records fit.
 */
const roomShareMin = 1 / 16;

export interface IntakeOptions {
  config: ActionConfig;
  journal: ActionJournal;
  /** The end of each shard's log now. */
  logEnds: readonly number[];
  action: Buffer;
  trigger: Trigger;
  inHand: InHand;
  devicesBehindMax: number;
  /** True if records may be taken now. */
  mayTake(): boolean;
  take(shard: number, record: StoredRecord): void;
}

/**
 * Takes the records of one action from the logs, in order. A device that has used its share of the records in hand and
 * makes no progress is left behind: the others pass, and its records are read again from its own cursor once there is
 * room.
 */
export class Intake {
  readonly progress: readonly QueueProgress[];
  readonly #options: IntakeOptions;
  #isCaughtUp = false;
  /** Set while the log holds more than there was room for. */
  #isFull = false;
  /** The device that could not be left behind, since all cursors were in use. */
  #lacksCursor: DeviceKey | undefined;

  constructor(options: IntakeOptions) {
    const { journal, action, logEnds } = options;
    this.#options = options;
    journal.refresh();
    this.progress = logEnds.map((end, shard) => new QueueProgress(journal, action, shard, end));
  }

  /** Devices whose records in the logs wait while those of others pass. */
  *devicesBehind(): Generator<DeviceKey> {
    for (const { behind } of this.progress) for (const [device] of behind.passed()) yield device;
  }

  /** True if nothing is taken until a device that is behind has caught up. */
  get isHeld(): boolean {
    if (this.#hasFreeCursor) return false;
    const { actionQueueMax } = this.#options.config.settings.current;
    if (this.progress.some(({ ahead }) => ahead > actionQueueMax)) return true;
    return this.#lacksCursor !== undefined && !this.#options.inHand.hasRoomFor(this.#lacksCursor);
  }

  /** Call before a poll. When no further record fits in hand, returns what cannot run now to the log. */
  makeRoom(): void {
    if (!this.#hasRoom) this.#putBack();
  }

  /**
   * True if the log of that shard is to be scanned further. After a start the backlog is scanned shard by shard: the
   * records of a relocated device lie in two logs, and the lower shard has the older ones.
   */
  wants(shard: number): boolean {
    if (!this.#options.mayTake() || this.isHeld) return false;
    if (!this.#hasRoom) return false;
    const first = this.#shardBehind();
    return first === undefined || first === shard;
  }

  /** Position up to which the log of that shard is scanned. */
  scanned(shard: number): number {
    return this.progress[shard]?.scanned ?? 0;
  }

  /** True if deciding on this record needs its device. */
  asksForDevice(record: StoredRecord): boolean {
    return this.#options.trigger.asksForTags(record);
  }

  /** Takes the action's records from a page of the log, as far as there is room. `devices`: those asked for. */
  offer(shard: number, page: LogPage, devices: ReadonlyMap<DeviceKey, Device | undefined>): void {
    const progress = this.progress[shard];
    if (progress === undefined) return;
    const end = this.#shardBehind() === undefined ? page.next : Math.min(page.next, this.#end(shard));
    for (const record of page.records) {
      const { position } = record;
      if (position >= end) break;
      progress.scanTo(position);
      if (position < progress.scanned) continue;
      // Advanced before matching the record, so that one that fails to match is skipped.
      progress.scanned = position + 1;
      if (this.#pass(shard, progress, record, devices)) continue;
      progress.scanned = position;
      this.#isFull = true;
      return;
    }
    progress.scanTo(end);
    this.#isFull = false;
  }

  /** Position to read the log of that shard again from, for devices that are behind and have room. */
  wantsAgain(shard: number): number | undefined {
    let from: number | undefined;
    if (!this.#options.mayTake()) return undefined;
    for (const [device, next] of this.progress[shard]?.behind.passed() ?? []) {
      if ((from === undefined || next < from) && this.#mayCatchUp(shard, device)) from = next;
    }
    return from;
  }

  /** Like `offer`, for the devices that are behind, with a page from `from` on. */
  offerAgain(
    shard: number,
    from: number,
    page: LogPage,
    devices: ReadonlyMap<DeviceKey, Device | undefined>,
  ): void {
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
      if (!this.#isFor(record, progress, devices.get(device))) continue;
      if (this.#options.inHand.hasRoomFor(device)) this.#take(shard, progress, record);
      else {
        behind.moveOn(device, position);
        following.delete(device);
      }
    }
    for (const device of following) behind.moveOn(device, page.next < scanned ? page.next : undefined);
  }

  /** Marks the record done, inside a write transaction. */
  finish(shard: number, record: StoredRecord): void {
    const progress = this.progress[shard];
    if (progress === undefined) return;
    progress.finish(record);
    // Bounds what is done ahead of the position to the records in hand: beyond that, the device that holds it back gets
    // a cursor of its own.
    while (progress.ahead > this.#options.config.settings.current.actionQueueMax) {
      const { first } = progress;
      if (first === undefined || !this.#leaveBehind(progress, first, undefined)) break;
    }
    progress.store();
  }

  /**
   * Takes the record if it is for this action. Returns false if there is no room, and waiting for some is worthwhile.
   */
  #pass(
    shard: number,
    progress: QueueProgress,
    record: StoredRecord,
    devices: ReadonlyMap<DeviceKey, Device | undefined>,
  ): boolean {
    const { device, position } = record;
    const { inHand } = this.#options;
    if (progress.behind.nextOf(device) !== undefined) return true;
    if (inHand.free === 0) this.#putBack();
    if (inHand.free === 0) return false;
    if (!this.#isFor(record, progress, devices.get(device))) return true;
    const waits = this.#isBehindBefore(shard, device);
    if (!waits && this.#options.inHand.hasRoomFor(device)) {
      this.#take(shard, progress, record);
      return true;
    }
    if (!waits && !this.#isSlow(device)) return false;
    const isLeft = this.#leaveBehind(progress, device, position);
    this.#lacksCursor = isLeft ? undefined : device;
    return isLeft;
  }

  #take(shard: number, progress: QueueProgress, record: StoredRecord): void {
    progress.take(record);
    this.#options.take(shard, record);
  }

  /**
   * True if the device is not to be waited for: it is stuck, or has much of all records in hand. Any other takes only
   * a moment.
   */
  #isSlow(device: DeviceKey): boolean {
    const muchOfAll = this.#options.config.settings.current.actionQueueMax * roomShareMin;
    return this.#options.inHand.isStuck(device) || this.#options.inHand.of(device) >= muchOfAll;
  }

  /** Returns false when all cursors are in use. */
  #leaveBehind(progress: QueueProgress, device: DeviceKey, next: number | undefined): boolean {
    if (!progress.behind.has(device) && !this.#hasFreeCursor) return false;
    progress.leaveBehind(device, next);
    return true;
  }

  get #hasFreeCursor(): boolean {
    const cursors = this.progress.reduce((sum, { behind }) => sum + behind.size, 0);
    return cursors < this.#options.devicesBehindMax;
  }

  /**
   * True if a page may be read. After it was full, only with room for several records, counted against what devices
   * behind leave to the others.
   */
  get #hasRoom(): boolean {
    const { inHand, config } = this.#options;
    if (!this.#isFull) return inHand.free > 0;
    const ofOthers = this.progress.reduce(
      (sum, { behind }) => sum - behind.inHand,
      config.settings.current.actionQueueMax,
    );
    return inHand.free >= Math.ceil(ofOthers * roomShareMin);
  }

  /**
   * Returns records to the log: all but the first of each device that waits for an attempt or is blocked by its dead
   * letters.
   */
  #putBack(): void {
    const { inHand } = this.#options;
    for (let stuck = inHand.stuck(); stuck.length > 0; stuck = inHand.stuck()) {
      let count = 0;
      for (const run of stuck) {
        const { device, position } = run.record;
        const progress = run.shard === undefined ? undefined : this.progress[run.shard];
        if (progress === undefined || !this.#leaveBehind(progress, device, position)) continue;
        progress.behind.putBack(device, position);
        inHand.putBack(run);
        count += 1;
      }
      if (count === 0) return;
    }
  }

  /** Waits for room for several records, as each time a page is read and decoded. */
  #mayCatchUp(shard: number, device: DeviceKey): boolean {
    const own = this.#options.inHand.of(device);
    if (this.#isBehindBefore(shard, device)) return false;
    if (own === 0) return this.#options.inHand.free > 0;
    return !this.#options.inHand.isStuck(device) && 2 * own <= this.#options.inHand.free;
  }

  /** True if older records of the device wait in the log of a lower shard, from which it was relocated. */
  #isBehindBefore(shard: number, device: DeviceKey): boolean {
    for (let lower = 0; lower < shard; lower += 1) {
      if (this.progress[lower]?.behind.nextOf(device) !== undefined) return true;
    }
    return false;
  }

  #isFor(record: StoredRecord, progress: QueueProgress, sender: Device | undefined): boolean {
    return !progress.isDone(record) && this.#options.trigger.matches(record, sender);
  }

  #end(shard: number): number {
    return this.#options.logEnds[shard] ?? 0;
  }

  /** The first shard whose backlog from before the start is not scanned yet. */
  #shardBehind(): number | undefined {
    if (this.#isCaughtUp) return undefined;
    const shard = this.progress.findIndex(({ scanned }, index) => scanned < this.#end(index));
    this.#isCaughtUp = shard < 0;
    return this.#isCaughtUp ? undefined : shard;
  }
}
