import type { DeviceKey } from '../../../core/identity.ts';
import type { Device } from '../../../domain/devices/device.ts';
import type { LogPage, StoredRecord } from '../../../domain/records/record.ts';
import type { ActionConfig } from '../config.ts';
import { type ActionJournal, carriedKey } from '../tables.ts';
import type { InHand } from './in-hand.ts';
import { QueueProgress } from './queue-progress.ts';
import type { Trigger } from './trigger.ts';

/** Of what a lane may have in hand. A page is decoded whole, however few of its records there is room for. */
const roomShareMin = 1 / 16;

export interface IntakeOptions {
  config: ActionConfig;
  journal: ActionJournal;
  /** Of each shard: where its log ends now. */
  logEnds: readonly number[];
  action: Buffer;
  trigger: Trigger;
  inHand: InHand;
  devicesBehindMax: number;
  /** Whether anything is to be taken now. */
  mayTake(): boolean;
  take(shard: number, record: StoredRecord): void;
}

/**
 * What one action takes from the logs, in their order. A device that has its share in hand and does not get on is
 * left behind: the others pass, and its records are read again from its own place once there is room for them.
 */
export class Intake {
  readonly progress: readonly QueueProgress[];
  readonly #options: IntakeOptions;
  #isCaughtUp = false;
  /** The log holds more than there was room for. */
  #isFull = false;
  /** It would have been left behind, and there was no place for one more. */
  #lacksPlace: DeviceKey | undefined;

  constructor(options: IntakeOptions) {
    const { journal, action, logEnds } = options;
    this.#options = options;
    journal.refresh();
    this.progress = logEnds.map((end, shard) => new QueueProgress(journal.tables, action, shard, end));
  }

  /** Devices of which records in the logs wait while those of others pass. */
  *devicesBehind(): Generator<DeviceKey> {
    for (const { behind } of this.progress) for (const [device] of behind.passed()) yield device;
  }

  /** Whether nothing more is taken before a device that is behind has caught up. */
  get isHeld(): boolean {
    if (this.#hasPlace) return false;
    const { actionQueueMax } = this.#options.config;
    if (this.progress.some(({ marks }) => marks > actionQueueMax)) return true;
    return this.#lacksPlace !== undefined && !this.#options.inHand.hasRoomFor(this.#lacksPlace);
  }

  /** Before a look: what cannot be run now goes back to the log, where nothing else fits in hand. */
  makeRoom(): void {
    if (!this.#hasRoom) this.#putBack();
  }

  /**
   * Whether to look further in the log of that shard. After a start it goes through what waits shard by shard:
   * the records of a device that has moved lie in two logs, and the lower shard has the older ones.
   */
  wants(shard: number): boolean {
    if (!this.#options.mayTake() || this.isHeld) return false;
    if (!this.#hasRoom) return false;
    const first = this.#shardBehind();
    return first === undefined || first === shard;
  }

  /** Whether the record's device has to be known for this lane to decide on it. */
  asksForDevice(record: StoredRecord): boolean {
    return this.#options.trigger.asksForTags(record);
  }

  /** Takes what is for it from a page of the log, as far as there is room. `devices`: those that it asks for. */
  offer(shard: number, page: LogPage, devices: ReadonlyMap<DeviceKey, Device>): void {
    const progress = this.progress[shard];
    if (progress === undefined) return;
    const end = this.#shardBehind() === undefined ? page.next : Math.min(page.next, this.#end(shard));
    for (const record of page.records) {
      const { position } = record;
      if (position < progress.scanned) continue;
      if (position >= end) break;
      // Before the record is looked at: one that cannot be is passed over.
      progress.scanned = position + 1;
      if (this.#pass(shard, progress, record, devices)) continue;
      progress.scanned = position;
      this.#isFull = true;
      return;
    }
    progress.scanned = Math.max(progress.scanned, end);
    this.#isFull = false;
  }

  /** From where on to look again in the log of that shard, for devices that are behind and have room. */
  wantsAgain(shard: number): number | undefined {
    let from: number | undefined;
    if (!this.#options.mayTake()) return undefined;
    for (const [device, next] of this.progress[shard]?.behind.passed() ?? []) {
      if ((from === undefined || next < from) && this.#mayCatchUp(shard, device)) from = next;
    }
    return from;
  }

  /** The same as `offer` for the devices that are behind, of a page from `from` on. */
  offerAgain(shard: number, from: number, page: LogPage, devices: ReadonlyMap<DeviceKey, Device>): void {
    const progress = this.progress[shard];
    if (progress === undefined) return;
    const { behind, scanned } = progress;
    const following = new Set<DeviceKey>();
    for (const [device, next] of behind.passed()) {
      // One that has no room now is left where it is, and looked for again from there.
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

  /** Where nothing stands from a position on, nothing is to come before the end that the log has told of. */
  passGap(shard: number, from: number): void {
    const progress = this.progress[shard];
    if (progress?.scanned === from) progress.scanned = Math.max(from, this.#end(shard));
  }

  /** Inside a write transaction: the record is done. */
  finish(shard: number, record: StoredRecord): void {
    const progress = this.progress[shard];
    if (progress === undefined) return;
    progress.finish(record);
    // As many marks as records in hand: then whoever holds the position up gets a place of its own.
    while (progress.marks > this.#options.config.actionQueueMax) {
      const { first } = progress;
      if (first === undefined || !this.#leaveBehind(progress, first, undefined)) break;
    }
    progress.store();
  }

  /** Takes the record if it is for this action. False: there is no room for it, and it is worth to wait for some. */
  #pass(
    shard: number,
    progress: QueueProgress,
    record: StoredRecord,
    devices: ReadonlyMap<DeviceKey, Device>,
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
    this.#lacksPlace = isLeft ? undefined : device;
    return isLeft;
  }

  #take(shard: number, progress: QueueProgress, record: StoredRecord): void {
    progress.take(record);
    this.#options.take(shard, record);
  }

  /** One that goes on, and has no more in hand than many others, is waited for: that takes a moment. */
  #isSlow(device: DeviceKey): boolean {
    const muchOfAll = this.#options.config.actionQueueMax * roomShareMin;
    return this.#options.inHand.isStuck(device) || this.#options.inHand.of(device) >= muchOfAll;
  }

  /** False when there are as many devices with places of their own as may be. */
  #leaveBehind(progress: QueueProgress, device: DeviceKey, next: number | undefined): boolean {
    if (!progress.behind.has(device) && !this.#hasPlace) return false;
    progress.leaveBehind(device, next);
    return true;
  }

  get #hasPlace(): boolean {
    const places = this.progress.reduce((sum, { behind }) => sum + behind.size, 0);
    return places < this.#options.devicesBehindMax;
  }

  /** Once it was full, for some more records than one, of what devices that are behind leave to the others. */
  get #hasRoom(): boolean {
    const { inHand, config } = this.#options;
    if (!this.#isFull) return inHand.free > 0;
    const ofOthers = this.progress.reduce((sum, { behind }) => sum - behind.inHand, config.actionQueueMax);
    return inHand.free >= Math.ceil(ofOthers * roomShareMin);
  }

  /** Of each device that waits for an attempt or for its parked runs, all but the record that it waits with. */
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

  /** Not for each single record: a page is read and decoded for it. */
  #mayCatchUp(shard: number, device: DeviceKey): boolean {
    const own = this.#options.inHand.of(device);
    if (this.#isBehindBefore(shard, device)) return false;
    if (own === 0) return this.#options.inHand.free > 0;
    return !this.#options.inHand.isStuck(device) && 2 * own <= this.#options.inHand.free;
  }

  /** Whether older records of the device wait in the log of a lower shard, from which it was moved. */
  #isBehindBefore(shard: number, device: DeviceKey): boolean {
    for (let lower = 0; lower < shard; lower += 1) {
      if (this.progress[lower]?.behind.nextOf(device) !== undefined) return true;
    }
    return false;
  }

  #isFor(record: StoredRecord, progress: QueueProgress, sender: Device | undefined): boolean {
    if (progress.isDone(record)) return false;
    // What a move took along was done before it, but for what is noted.
    const { carried } = this.#options.journal.tables;
    if (record.isRelocated && !carried.doesExist(carriedKey(this.#options.action, record.id))) return false;
    return this.#options.trigger.matches(record, sender);
  }

  #end(shard: number): number {
    return this.#options.logEnds[shard] ?? 0;
  }

  /** The first shard whose log of before the start is not gone through. */
  #shardBehind(): number | undefined {
    if (this.#isCaughtUp) return undefined;
    const shard = this.progress.findIndex(({ scanned }, index) => scanned < this.#end(index));
    this.#isCaughtUp = shard < 0;
    return this.#isCaughtUp ? undefined : shard;
  }
}
