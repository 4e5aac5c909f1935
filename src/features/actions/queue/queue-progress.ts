import type { DeviceKey } from '../../../core/identity.ts';
import type { ActionJournal } from '../tables.ts';
import { actionShardKey, numberKey, numberValue, rangeOf, readNumber } from '../tables.ts';
import { DevicesBehind, storedCursors } from './devices-behind.ts';

/** A record, by position. */
export interface QueuePosition {
  device: DeviceKey;
  position: number;
}

interface Entry extends QueuePosition {
  isDone: boolean;
}

/** The position as stored: all before it is done in the log of that shard, except for devices that are behind. */
export function storedPosition(tables: ActionJournal['tables'], action: Buffer, shard: number): number {
  const stored = tables.positions.getBinary(actionShardKey(action, shard));
  return stored === undefined ? 0 : readNumber(stored);
}

/** The lowest stored position, including devices that are behind. */
export function storedLowest(tables: ActionJournal['tables'], action: Buffer, shard: number): number {
  let lowest = storedPosition(tables, action, shard);
  for (const { position } of storedCursors(tables, actionShardKey(action, shard)))
    lowest = Math.min(lowest, position);
  return lowest;
}

/**
 * Progress of one action in the log of one shard. Records are done out of order, as devices do not wait for each other.
 * Stored are the position before which all are done, and a mark for each done one past it. A device that holds the
 * position back gets a cursor of its own, which bounds the marks.
 */
export class QueueProgress {
  readonly behind: DevicesBehind;
  /** Scanned up to here. */
  scanned: number;
  readonly #tables: ActionJournal['tables'];
  readonly #key: Buffer;
  #stored: number;
  /** Records in hand, in order, from the first that is not done. */
  #entries: Entry[] = [];
  readonly #marks = new Set<number>();
  /**
   * Marks before the position, left by an earlier version of the action: a new one that runs for more has records to do
   * before records that are done. Kept while devices are behind that they may belong to.
   */
  readonly #earlierMarks = new Set<number>();

  /** `logEnd`: caps the stored position, which may be ahead of a log that was restored by hand. */
  constructor(tables: ActionJournal['tables'], action: Buffer, shard: number, logEnd: number) {
    this.#tables = tables;
    this.#key = actionShardKey(action, shard);
    this.#stored = storedPosition(tables, action, shard);
    this.scanned = Math.min(this.#stored, logEnd);
    this.behind = new DevicesBehind(tables, this.#key, this.scanned);
    for (const key of tables.done.getKeys(rangeOf(this.#key))) {
      const mark = readNumber(key);
      this.#earlierMarks.add(mark);
      if (mark >= this.#stored) this.#marks.add(mark);
    }
  }

  /** All before this position is done, except for devices that are behind. */
  get position(): number {
    return this.#entries[0]?.position ?? this.scanned;
  }

  get isStored(): boolean {
    return this.position === this.#stored && this.behind.isStored(this.#stored);
  }

  /** Number of records done past the position, each with a mark. */
  get marks(): number {
    return this.#marks.size;
  }

  /** The device that holds the position back. */
  get first(): DeviceKey | undefined {
    return this.#entries[0]?.device;
  }

  /** The position before which nothing is left to scan. */
  get lowestScanned(): number {
    let lowest = this.scanned;
    for (const [, next] of this.behind.passed()) lowest = Math.min(lowest, next);
    return lowest;
  }

  /** Whether the record was done before the last start. */
  isDone({ device, position }: QueuePosition): boolean {
    return (
      this.#marks.has(position) || this.#earlierMarks.has(position) || this.behind.isDone(device, position)
    );
  }

  take({ device, position }: QueuePosition): void {
    if (this.behind.has(device)) this.behind.take(device);
    else this.#entries.push({ device, position, isDone: false });
  }

  /** Gives the device a cursor of its own; with `next`, its records wait from there on. */
  leaveBehind(device: DeviceKey, next: number | undefined): void {
    if (this.behind.has(device)) {
      this.behind.moveOn(device, next);
      return;
    }
    const own = this.#entries.filter((entry) => entry.device === device && !entry.isDone);
    const position = own[0]?.position ?? next ?? this.scanned;
    this.behind.add(device, { position, next, inHand: own.length });
    this.#entries = this.#entries.filter((entry) => !own.includes(entry));
    this.#dropDone();
  }

  /** Call inside a write transaction, which must call `store` too. If it fails, this object is unusable. */
  finish({ device, position }: QueuePosition): void {
    if (this.behind.has(device)) {
      this.behind.finish(device, position);
      return;
    }
    const entry = this.#entries.find((one) => one.position === position);
    if (entry !== undefined) entry.isDone = true;
    this.#dropDone();
    if (position < this.position) return;
    this.#tables.done.putSync(numberKey(this.#key, position), Buffer.alloc(0));
    this.#marks.add(position);
  }

  /** Call inside a write transaction. */
  store(): void {
    const { position } = this;
    // In one transaction with the position, as the records of devices behind lie before it.
    this.behind.store(position);
    if (position === this.#stored) return;
    this.#tables.positions.putSync(this.#key, numberValue(position));
    this.#stored = position;
    const lowest = Math.min(position, this.behind.lowestPosition);
    for (const mark of this.#marks) {
      if (mark >= position) continue;
      this.#marks.delete(mark);
      if (!this.#earlierMarks.has(mark)) this.#tables.done.removeSync(numberKey(this.#key, mark));
    }
    for (const mark of this.#earlierMarks) {
      if (mark >= lowest) continue;
      this.#earlierMarks.delete(mark);
      this.#tables.done.removeSync(numberKey(this.#key, mark));
    }
  }

  #dropDone(): void {
    const open = this.#entries.findIndex(({ isDone }) => !isDone);
    this.#entries = open < 0 ? [] : this.#entries.slice(open);
  }
}
