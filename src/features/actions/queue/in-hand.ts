import { isWithinShare } from '../../../core/fair-share.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';

/** A record that the action has to run for. */
export interface PendingRun {
  record: StoredRecord;
  /** Shard of the log it comes from; undefined for a replayed dead letter. */
  shard: number | undefined;
  /** Number of the dead letter, if this is its replay. */
  deadLetter: number | undefined;
  /** Counted from 1. */
  attempt: number;
  /** Number of conflicts with concurrent changes of the state. */
  conflicts: number;
  /** Earliest time of the next attempt, by `performance.now()`. */
  dueMs: number;
}

/** The records of one device in hand, run one at a time, in order. */
interface DeviceQueue {
  /** Replayed dead letters: older than all others, so they do not wait for them. */
  replays: PendingRun[];
  runs: PendingRun[];
  underWay: PendingRun | undefined;
}

/**
 * The records of one action in hand: those of a device run in sequence, devices in parallel. Devices share the room, so
 * that none can take all of it. Replayed dead letters do not count; there are at most `actionDeadLettersMax`.
 */
export class InHand {
  readonly #max: () => number;
  readonly #mayStart: (run: PendingRun) => boolean;
  readonly #queues = new Map<DeviceKey, DeviceQueue>();
  /** In order of their turns; those that wait for something other than a thread keep their turn. */
  readonly #ready = new Set<DeviceQueue>();
  /** Waiting for another attempt. */
  readonly #delayed = new Set<DeviceQueue>();
  readonly #replayed = new Set<number>();
  #used = 0;

  /**
   * `max`: maximum records, which may change. `mayStart`: whether there is room for the possible outcomes of the run.
   */
  constructor(max: () => number, mayStart: (run: PendingRun) => boolean) {
    this.#max = max;
    this.#mayStart = mayStart;
  }

  /** Records of all devices, including replayed dead letters. */
  get size(): number {
    return this.#used + this.#replayed.size;
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

  /** True if the device's next run waits for another attempt, or for room among the dead letters. */
  isStuck(device: DeviceKey): boolean {
    const queue = this.#queues.get(device);
    if (queue === undefined || queue.underWay !== undefined) return false;
    return this.#delayed.has(queue) || (this.#ready.has(queue) && !this.#isStartable(queue));
  }

  /** Devices that cannot start anything until some of their dead letters are gone. */
  *blocked(): Generator<DeviceKey> {
    for (const queue of this.#ready) {
      const [head] = queue.runs;
      if (head !== undefined && !this.#isStartable(queue)) yield head.record.device;
    }
  }

  /** The last runs of devices with several in hand, the next of which cannot start now. */
  stuck(): PendingRun[] {
    const blocked = [...this.#ready].filter((queue) => !this.#isStartable(queue));
    return [...this.#delayed, ...blocked].flatMap(({ runs }) => (runs.length > 1 ? runs.slice(-1) : []));
  }

  /** Removes the last record of a device. Only its first may have been attempted. */
  putBack(run: PendingRun): void {
    this.#queues.get(run.record.device)?.runs.pop();
    this.#used -= 1;
  }

  push(run: PendingRun): void {
    this.#used += 1;
    const queue = this.#queueOf(run.record.device);
    queue.runs.push(run);
    this.#enqueue(queue);
  }

  /** Queues a replay of a dead letter. Returns false if one is under way already. */
  pushReplay(run: PendingRun & { deadLetter: number }): boolean {
    if (this.#replayed.has(run.deadLetter)) return false;
    this.#replayed.add(run.deadLetter);
    const queue = this.#queueOf(run.record.device);
    queue.replays.push(run);
    this.#enqueue(queue);
    return true;
  }

  /** True if a run could start now if a thread were free. */
  hasReady(nowMs: number): boolean {
    for (const queue of this.#delayed) if (headOf(queue).dueMs <= nowMs) this.#enqueue(queue);
    return this.#startable() !== undefined;
  }

  next(): PendingRun | undefined {
    const queue = this.#startable();
    if (queue === undefined) return undefined;
    this.#ready.delete(queue);
    queue.underWay = headOf(queue);
    return queue.underWay;
  }

  /** Schedules another attempt; further records of its device wait behind it. */
  delay(run: PendingRun, milliseconds: number): void {
    run.dueMs = performance.now() + milliseconds;
    const queue = this.#queueOf(run.record.device);
    queue.underWay = undefined;
    this.#enqueue(queue);
  }

  finish(run: PendingRun): void {
    const { device } = run.record;
    const queue = this.#queueOf(device);
    queue.underWay = undefined;
    if (run.deadLetter === undefined) {
      queue.runs.shift();
      this.#used -= 1;
    } else {
      queue.replays.shift();
      this.#replayed.delete(run.deadLetter);
    }
    if (queue.runs.length + queue.replays.length === 0) this.#queues.delete(device);
    else this.#enqueue(queue);
  }

  #queueOf(device: DeviceKey): DeviceQueue {
    const known = this.#queues.get(device);
    if (known !== undefined) return known;
    const queue = { replays: [], runs: [], underWay: undefined };
    this.#queues.set(device, queue);
    return queue;
  }

  #enqueue(queue: DeviceQueue): void {
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

function headOf({ replays: [replay], runs: [run] }: DeviceQueue): PendingRun {
  const head = replay ?? run;
  if (head === undefined) throw new Error('a device with nothing in hand has no queue');
  return head;
}
