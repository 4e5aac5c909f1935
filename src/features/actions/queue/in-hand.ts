import { isWithinShare } from '../../../core/fair-share.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';

/** One record that one action is to be run for. */
export interface PendingRun {
  record: StoredRecord;
  /** Of the log that it stands in; undefined when it was parked. */
  shard: number | undefined;
  /** Its number among the parked runs, when it is tried again. */
  parked: number | undefined;
  /** From 1. */
  attempt: number;
  /** How often others changed the state under it. */
  conflicts: number;
  /** Of `performance.now()`: not to be tried before. */
  dueMs: number;
}

/** What is in hand of one device: one at a time runs, in order. */
interface DeviceQueue {
  /** Parked runs that are tried again: older than all others, and not to wait for any of them. */
  retries: PendingRun[];
  runs: PendingRun[];
  underWay: PendingRun | undefined;
}

/**
 * The records of one action that are in hand, each device's behind one another and devices side by side. They share
 * what there is room for, so that none can have it all. Parked runs that are tried again are beside that: there are
 * `actionParkedRunsMax` of them at most.
 */
export class InHand {
  readonly #max: () => number;
  readonly #mayStart: (run: PendingRun) => boolean;
  readonly #queues = new Map<DeviceKey, DeviceQueue>();
  /** In the order of their turns; those that wait for something else than a thread stay where they are. */
  readonly #ready = new Set<DeviceQueue>();
  /** For another attempt. */
  readonly #delayed = new Set<DeviceQueue>();
  readonly #retried = new Set<number>();
  #used = 0;

  /** `max`: records, which can be changed. `mayStart`: whether there is room for what may become of it. */
  constructor(max: () => number, mayStart: (run: PendingRun) => boolean) {
    this.#max = max;
    this.#mayStart = mayStart;
  }

  /** Of all devices, with parked runs that are tried again. */
  get size(): number {
    return this.#used + this.#retried.size;
  }

  get used(): number {
    return this.#used;
  }

  get free(): number {
    return this.#max() - this.#used;
  }

  of(device: DeviceKey): number {
    return this.#queues.get(device)?.runs.length ?? 0;
  }

  hasRoomFor(device: DeviceKey): boolean {
    return isWithinShare(this.#max(), this.#used, this.of(device));
  }

  /** Whether its next run waits for another attempt, or for room among what is parked. */
  isStuck(device: DeviceKey): boolean {
    const queue = this.#queues.get(device);
    if (queue === undefined || queue.underWay !== undefined) return false;
    return this.#delayed.has(queue) || (this.#ready.has(queue) && !this.#isStartable(queue));
  }

  /** Devices of which nothing can start before some of their parked runs are gone. */
  *blocked(): Generator<DeviceKey> {
    for (const queue of this.#ready) {
      const [head] = queue.runs;
      if (head !== undefined && !this.#isStartable(queue)) yield head.record.device;
    }
  }

  /** Those whose next run cannot start now, with more in hand behind it. */
  stuck(): PendingRun[] {
    const blocked = [...this.#ready].filter((queue) => !this.#isStartable(queue));
    return [...this.#delayed, ...blocked].flatMap(({ runs }) => (runs.length > 1 ? runs.slice(-1) : []));
  }

  /** Takes the last record of a device out again. Only the first may have been tried. */
  putBack(run: PendingRun): void {
    this.#queues.get(run.record.device)?.runs.pop();
    this.#used -= 1;
  }

  /** Whether all of it waits for parked runs to go. */
  get isBlocked(): boolean {
    return this.#queues.size > 0 && [...this.blocked()].length === this.#queues.size;
  }

  push(run: PendingRun): void {
    this.#used += 1;
    const queue = this.#queueOf(run.record.device);
    queue.runs.push(run);
    this.#place(queue);
  }

  /** A parked run, once at a time. False when it is being tried already. */
  pushRetry(run: PendingRun & { parked: number }): boolean {
    if (this.#retried.has(run.parked)) return false;
    this.#retried.add(run.parked);
    const queue = this.#queueOf(run.record.device);
    queue.retries.push(run);
    this.#place(queue);
    return true;
  }

  /** Whether a run could start now, but for a thread. */
  hasReady(nowMs: number): boolean {
    for (const queue of this.#delayed) if (headOf(queue).dueMs <= nowMs) this.#place(queue);
    return this.#startable() !== undefined;
  }

  next(): PendingRun | undefined {
    const queue = this.#startable();
    if (queue === undefined) return undefined;
    this.#ready.delete(queue);
    queue.underWay = headOf(queue);
    return queue.underWay;
  }

  /** For another attempt; what else there is of its device waits behind it. */
  delay(run: PendingRun, milliseconds: number): void {
    run.dueMs = performance.now() + milliseconds;
    const queue = this.#queueOf(run.record.device);
    queue.underWay = undefined;
    this.#place(queue);
  }

  finish(run: PendingRun): void {
    const { device } = run.record;
    const queue = this.#queueOf(device);
    queue.underWay = undefined;
    if (run.parked === undefined) {
      queue.runs.shift();
      this.#used -= 1;
    } else {
      queue.retries.shift();
      this.#retried.delete(run.parked);
    }
    if (queue.runs.length + queue.retries.length === 0) this.#queues.delete(device);
    else this.#place(queue);
  }

  #queueOf(device: DeviceKey): DeviceQueue {
    const known = this.#queues.get(device);
    if (known !== undefined) return known;
    const queue = { retries: [], runs: [], underWay: undefined };
    this.#queues.set(device, queue);
    return queue;
  }

  #place(queue: DeviceQueue): void {
    if (queue.underWay !== undefined) return;
    const isDue = headOf(queue).dueMs <= performance.now();
    this.#delayed.delete(queue);
    if (isDue) this.#ready.add(queue);
    else {
      this.#ready.delete(queue);
      this.#delayed.add(queue);
    }
  }

  #startable(): DeviceQueue | undefined {
    for (const queue of this.#ready) if (this.#isStartable(queue)) return queue;
    return undefined;
  }

  #isStartable(queue: DeviceQueue): boolean {
    return this.#mayStart(headOf(queue));
  }
}

function headOf({ retries: [retry], runs: [run] }: DeviceQueue): PendingRun {
  const head = retry ?? run;
  if (head === undefined) throw new Error('a device with nothing in hand has no queue');
  return head;
}
