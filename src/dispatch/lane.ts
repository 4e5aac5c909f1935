import type { Config } from '../core/config.ts';
import type { DeviceKey } from '../core/identity.ts';
import type { Action, ActionVersion } from '../registry/action.ts';
import type { Device, LogPage, StoredRecord } from '../shard/shard.ts';
import { Pace } from './pace.ts';
import { Progress } from './progress.ts';
import type { ActionJournal } from './tables.ts';
import { actionKey, carriedKey } from './tables.ts';
import { Trigger } from './trigger.ts';

/** One record that one action is to be run for. */
export interface PendingRun {
  lane: Lane;
  record: StoredRecord;
  /** Of the log that it stands in; undefined when it was parked. */
  shard: number | undefined;
  /** Its number among the parked runs, when it is tried again. */
  parked: number | undefined;
  /** From 1. */
  attempt: number;
  /** How often others changed the state under it. */
  conflicts: number;
}

/** Of what a lane may have in hand. A page is decoded whole, however few of its records there is room for. */
const roomShareMin = 1 / 16;

export interface LaneOptions {
  config: Config;
  journal: ActionJournal;
  /** Of each shard: where its log ends now. */
  logEnds: readonly number[];
  /** How many of its runs are parked. */
  parked: number;
}

/**
 * One version of one action on its way through the logs. What it has in hand is bounded; all else waits in the
 * log, which is its queue. In hand, the records of a device wait for each other, and devices do not.
 */
export class Lane {
  readonly action: Action;
  readonly version: ActionVersion;
  readonly id: Buffer;
  readonly pace: Pace;
  readonly progress: readonly Progress[];
  /** Set when another lane takes over from what is on disk: nothing of this one is to be stored any more. */
  isStopped = false;
  inHand = 0;
  running = 0;
  parked: number;
  readonly #options: LaneOptions;
  readonly #trigger: Trigger;
  readonly #queues = new Map<DeviceKey, PendingRun[]>();
  #ready: PendingRun[] = [];
  #delayed: { run: PendingRun; atMs: number }[] = [];
  readonly #retried = new Set<number>();
  #isCaughtUp = false;
  /** The log holds more than there was room for. */
  #isFull = false;

  constructor(action: Action, version: ActionVersion, options: LaneOptions) {
    const { config, journal, logEnds } = options;
    this.action = action;
    this.version = version;
    this.#options = options;
    this.#trigger = new Trigger(action, version);
    this.id = actionKey(action.id);
    this.pace = new Pace(() => action.runsPerSecondMax ?? config.actionRunsPerSecondMax);
    journal.refresh();
    this.progress = logEnds.map((end, shard) => new Progress(journal.tables, this.id, shard, end));
    this.parked = options.parked;
  }

  /** Why it takes nothing from the logs, or runs nothing of what it has taken. */
  get held(): 'parked_full' | 'limited' | undefined {
    if (this.parked >= this.#options.config.actionParkedRunsMax) return 'parked_full';
    return this.pace.isOpen ? undefined : 'limited';
  }

  /**
   * Whether to look further in the log of that shard. After a start it goes through what waits shard by shard:
   * the records of a device that has moved lie in two logs, and the lower shard has the older ones.
   */
  wants(shard: number): boolean {
    const { actionQueueMax } = this.#options.config;
    const roomMin = this.#isFull ? Math.ceil(actionQueueMax * roomShareMin) : 1;
    if (this.isStopped || actionQueueMax - this.inHand < roomMin) return false;
    if (this.held === 'parked_full') return false;
    const behind = this.#shardBehind();
    return behind === undefined || behind === shard;
  }

  /** Whether the record's device has to be known for this lane to decide on it. */
  asksForDevice(record: StoredRecord): boolean {
    return this.#trigger.asksForTags(record);
  }

  /** Takes what is for it from a page of the log, as far as there is room. `devices`: those that it asks for. */
  offer(shard: number, page: LogPage, devices: ReadonlyMap<DeviceKey, Device>): void {
    const progress = this.progress[shard];
    if (progress === undefined) return;
    const end = this.#shardBehind() === undefined ? page.next : Math.min(page.next, this.#end(shard));
    for (const record of page.records) {
      if (record.position < progress.scanned) continue;
      if (record.position >= end || this.inHand >= this.#options.config.actionQueueMax) {
        progress.scanned = record.position;
        this.#isFull = record.position < end;
        return;
      }
      progress.scanned = record.position + 1;
      if (this.#isFor(record, progress, devices.get(record.device))) {
        progress.take(record.position);
        this.push({ lane: this, record, shard, parked: undefined, attempt: 1, conflicts: 0 });
      }
    }
    progress.scanned = Math.max(progress.scanned, end);
    this.#isFull = false;
  }

  /** Where nothing stands from a position on, nothing is to come before the end that the log has told of. */
  passGap(shard: number, from: number): void {
    const progress = this.progress[shard];
    if (progress?.scanned === from) progress.scanned = Math.max(from, this.#end(shard));
  }

  push(run: PendingRun): void {
    this.inHand += 1;
    const queue = this.#queues.get(run.record.device);
    if (queue !== undefined) queue.push(run);
    else {
      this.#queues.set(run.record.device, [run]);
      this.#ready.push(run);
    }
  }

  /** A parked run, once at a time. False when it is being tried already. */
  pushParked(run: PendingRun & { parked: number }): boolean {
    if (this.#retried.has(run.parked)) return false;
    this.#retried.add(run.parked);
    this.push(run);
    return true;
  }

  /** Whether a run could start now, but for a thread. */
  hasReady(nowMs: number): boolean {
    if (this.#delayed.length > 0) {
      const due = this.#delayed.filter(({ atMs }) => atMs <= nowMs);
      if (due.length > 0) {
        this.#delayed = this.#delayed.filter(({ atMs }) => atMs > nowMs);
        this.#ready.push(...due.map(({ run }) => run));
      }
    }
    return !this.isStopped && this.#ready.length > 0 && this.pace.isOpen;
  }

  next(): PendingRun | undefined {
    const run = this.#ready.shift();
    if (run !== undefined) this.pace.take();
    return run;
  }

  /** For another attempt; what else there is of its device waits behind it. */
  delay(run: PendingRun, milliseconds: number): void {
    this.#delayed.push({ run, atMs: performance.now() + milliseconds });
  }

  /** Inside a write transaction: the record is done, whatever came of it. */
  store({ shard, record }: PendingRun): void {
    if (shard === undefined) return;
    this.progress[shard]?.finish(record.position);
    if (record.isMoved) this.#options.journal.tables.carried.removeSync(carriedKey(this.id, record.id));
  }

  /** Its mails are where they belong: the next record of its device may run. */
  finish(run: PendingRun): void {
    this.inHand -= 1;
    if (run.parked !== undefined) this.#retried.delete(run.parked);
    const queue = this.#queues.get(run.record.device) ?? [];
    queue.shift();
    const [next] = queue;
    if (next === undefined) this.#queues.delete(run.record.device);
    else this.#ready.push(next);
  }

  #isFor(record: StoredRecord, progress: Progress, sender: Device | undefined): boolean {
    if (progress.isDone(record.position)) return false;
    // What a move took along was done before it, but for what is noted.
    const { carried } = this.#options.journal.tables;
    if (record.isMoved && !carried.doesExist(carriedKey(this.id, record.id))) return false;
    return this.#trigger.matches(record, sender);
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
