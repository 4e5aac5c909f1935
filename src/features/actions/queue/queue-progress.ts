import type { DeviceKey } from '../../../core/identity.ts';
import type { ActionJournal } from '../tables.ts';
import { actionShardKey, numberKey, numberValue, rangeOf, readNumber } from '../tables.ts';
import { DevicesBehind, storedPlaces } from './devices-behind.ts';

/** What there is to know of a record here. */
export interface QueuePosition {
  device: DeviceKey;
  position: number;
}

interface Entry extends QueuePosition {
  isDone: boolean;
}

/** Before this position of that shard's log all is done, as it is on disk, but for devices that are behind. */
export function storedPosition(tables: ActionJournal['tables'], action: Buffer, shard: number): number {
  const stored = tables.positions.getBinary(actionShardKey(action, shard));
  return stored === undefined ? 0 : readNumber(stored);
}

/** The same with them. */
export function storedLowest(tables: ActionJournal['tables'], action: Buffer, shard: number): number {
  let lowest = storedPosition(tables, action, shard);
  for (const { position } of storedPlaces(tables, actionShardKey(action, shard)))
    lowest = Math.min(lowest, position);
  return lowest;
}

/**
 * How far one action has come in the log of one shard. Records are done out of order, since devices do not
 * wait for each other: durable are the position before which all of them are, and a mark for each one behind
 * it. A device that would hold the position up gets a place of its own, which bounds the marks.
 */
export class QueueProgress {
  readonly behind: DevicesBehind;
  /** Looked at up to here. */
  scanned: number;
  readonly #tables: ActionJournal['tables'];
  readonly #key: Buffer;
  #stored: number;
  /** In hand, in order, from the first that is not done. */
  #entries: Entry[] = [];
  readonly #marks = new Set<number>();
  /**
   * Marks before the position that an earlier version of the action left: what was done may lie behind what is not,
   * when the new one runs for more. Kept while devices are behind that they may be of.
   */
  readonly #earlierMarks = new Set<number>();

  /** `logEnd`: what is stored may be ahead of a log that was restored by hand; it is not to wait for it. */
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

  /** Before this position all is done, but for devices that are behind. */
  get position(): number {
    return this.#entries[0]?.position ?? this.scanned;
  }

  get isStored(): boolean {
    return this.position === this.#stored && this.behind.isStored(this.#stored);
  }

  /** Records that are done ahead of the position, each of which has a mark. */
  get marks(): number {
    return this.#marks.size;
  }

  /** The device that holds the position up. */
  get first(): DeviceKey | undefined {
    return this.#entries[0]?.device;
  }

  /** Before this nothing is to be looked at any more. */
  get lookedAt(): number {
    let lowest = this.scanned;
    for (const [, next] of this.behind.passed()) lowest = Math.min(lowest, next);
    return lowest;
  }

  /** Whether it was done before the last start. */
  isDone({ device, position }: QueuePosition): boolean {
    return (
      this.#marks.has(position) || this.#earlierMarks.has(position) || this.behind.isDone(device, position)
    );
  }

  take({ device, position }: QueuePosition): void {
    if (this.behind.has(device)) this.behind.take(device);
    else this.#entries.push({ device, position, isDone: false });
  }

  /** From now on the device has a place of its own, and with `next` its records wait from there on. */
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

  /** Inside a write transaction, which is to `store` too. When that fails, this object is of no use any more. */
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

  /** Inside a write transaction. */
  store(): void {
    const { position } = this;
    // In one with the position, for what is theirs lies before it.
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
