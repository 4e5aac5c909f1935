import type { DeviceKey } from '../../../core/identity.ts';
import { Collection } from '../../../storage/tables/collection.ts';
import type { TableStore } from '../../../storage/tables/table-store.ts';
import { Cursor, Cursors } from '../../records/cursor.ts';
import { behindTable } from '../tables.ts';

interface DeviceCursor {
  /** Its first record that is not done. One number suffices, as the records of a device are done in order. */
  position: number;
  /** Position to read on from among records that the others have passed; undefined: it is where the others are. */
  next: number | undefined;
  /** Number of its records of this log in hand. */
  inHand: number;
}

/** The cursors of lagging devices in the log of one shard, as stored. */
export function storedDeviceCursors(
  store: Pick<TableStore, 'rows'>,
  action: Buffer,
  shard: number,
): Map<DeviceKey, number> {
  const rows = new Collection(store, behindTable).entries([action, shard]);
  return new Map([...rows].map(([[, , device], [position]]) => [device, position]));
}

/**
 * Devices with a cursor of their own in the log of one shard, so that the others need not wait for them. Thousands of
 * their records may lie between those of others; the cursor is all that is stored of them.
 */
class DevicesBehind {
  readonly #stored: Collection<[Buffer, number, DeviceKey], [position: number]>;
  readonly #key: readonly [action: Buffer, shard: number];
  readonly #cursors = new Map<DeviceKey, DeviceCursor>();
  readonly #changed = new Set<DeviceKey>();

  /** `scanned`: where the action starts scanning. A device before that has records that were passed. */
  constructor(store: Pick<TableStore, 'rows'>, action: Buffer, shard: number, scanned: number) {
    this.#stored = new Collection(store, behindTable);
    this.#key = [action, shard];
    for (const [device, position] of storedDeviceCursors(store, action, shard)) {
      this.#cursors.set(device, { position, next: position < scanned ? position : undefined, inHand: 0 });
    }
  }

  get size(): number {
    return this.#cursors.size;
  }

  get inHand(): number {
    let inHand = 0;
    for (const cursor of this.#cursors.values()) inHand += cursor.inHand;
    return inHand;
  }

  has(device: DeviceKey): boolean {
    return this.#cursors.has(device);
  }

  /** The lowest position that is not done, of all these devices. */
  get lowestPosition(): number {
    let lowest = Number.POSITIVE_INFINITY;
    for (const { position } of this.#cursors.values()) lowest = Math.min(lowest, position);
    return lowest;
  }

  /** Devices with passed records, and where these begin. */
  *passed(): Generator<[DeviceKey, number]> {
    for (const [device, { next }] of this.#cursors) if (next !== undefined) yield [device, next];
  }

  nextOf(device: DeviceKey): number | undefined {
    return this.#cursors.get(device)?.next;
  }

  isDone(device: DeviceKey, position: number): boolean {
    const cursor = this.#cursors.get(device);
    return cursor !== undefined && position < cursor.position;
  }

  add(device: DeviceKey, cursor: DeviceCursor): void {
    this.#cursors.set(device, cursor);
    this.#changed.add(device);
  }

  /** Notes up to where its records were read; undefined: as far as the others. */
  moveOn(device: DeviceKey, next: number | undefined): void {
    const cursor = this.#cursors.get(device);
    if (cursor !== undefined) cursor.next = next;
  }

  take(device: DeviceKey): void {
    const cursor = this.#cursors.get(device);
    if (cursor !== undefined) cursor.inHand += 1;
  }

  /** Returns a taken record to the log, to be read again. */
  putBack(device: DeviceKey, position: number): void {
    const cursor = this.#cursors.get(device);
    if (cursor === undefined) return;
    cursor.next = position;
    cursor.inHand -= 1;
  }

  finish(device: DeviceKey, position: number): void {
    const cursor = this.#cursors.get(device);
    if (cursor === undefined) return;
    cursor.position = position + 1;
    cursor.inHand -= 1;
    this.#changed.add(device);
  }

  /** True if nothing needs storing. `position`: everything of the others before it is done. */
  isStored(position: number): boolean {
    if (this.#changed.size > 0) return false;
    for (const cursor of this.#cursors.values()) if (hasCaughtUp(cursor, position)) return false;
    return true;
  }

  /** Call inside the write transaction that stores `position`. */
  store(position: number): void {
    for (const [device, cursor] of this.#cursors) {
      if (hasCaughtUp(cursor, position)) {
        this.#stored.delete([...this.#key, device]);
        this.#cursors.delete(device);
      } else if (this.#changed.has(device)) this.#stored.put([...this.#key, device], [cursor.position]);
    }
    this.#changed.clear();
  }
}

/**
 * True if a device needs no cursor any more: nothing of it is open, and all it has done lies before the stored
 * position.
 */
function hasCaughtUp({ next, inHand, position: own }: DeviceCursor, position: number): boolean {
  return next === undefined && inHand === 0 && own <= position;
}

/** A record, by position. */
export interface QueuePosition {
  device: DeviceKey;
  position: number;
}

interface Entry extends QueuePosition {
  isDone: boolean;
}

/** On disk, the lowest position that is not done, and the positions lost before the cursor. */
export function storedProgress(
  store: Pick<TableStore, 'rows'>,
  action: Buffer,
  shard: number,
): { lowest: number; lost: number } {
  const { position, lost } = new Cursors(store).read(action, shard);
  return { lowest: Math.min(position, ...storedDeviceCursors(store, action, shard).values()), lost };
}

/**
 * Progress of one action in the log of one shard. Records are done out of order, as devices do not wait for each other:
 * those past the position of the cursor are acknowledged ahead of it. A device that holds the position back gets a cursor
 * of its own, which bounds their number.
 */
export class LogProgress {
  readonly behind: DevicesBehind;
  /** Scanned up to here. */
  scanned: number;
  readonly #cursor: Cursor;
  /** Records in hand, in order, from the first that is not done. */
  #entries: Entry[] = [];

  /** `logEnd`: caps the position, which may be ahead of a log that was restored by hand. */
  constructor(store: Pick<TableStore, 'rows'>, action: Buffer, shard: number, logEnd: number) {
    this.#cursor = new Cursor(new Cursors(store), action, shard);
    this.scanned = this.#cursor.next(Math.min(this.#cursor.position, logEnd));
    this.behind = new DevicesBehind(store, action, shard, this.scanned);
  }

  /** All before this position is done, except for devices that are behind. */
  get position(): number {
    return this.#entries[0]?.position ?? this.scanned;
  }

  get isStored(): boolean {
    return this.position === this.#cursor.position && this.behind.isStored(this.position);
  }

  /** Number of records done ahead of the position, each with a row on disk. */
  get ahead(): number {
    return this.#cursor.ahead;
  }

  /** Positions, of any fleet, that retention removed before they were scanned. */
  get lost(): number {
    return this.#cursor.lostBefore(this.position);
  }

  /** The device that holds the position back. */
  get first(): DeviceKey | undefined {
    return this.#entries[0]?.device;
  }

  /** The position before which nothing is left to scan. */
  get lowest(): number {
    let lowest = this.scanned;
    for (const [, next] of this.behind.passed()) lowest = Math.min(lowest, next);
    return lowest;
  }

  /** True if the record was done before the last start. */
  isDone({ device, position }: QueuePosition): boolean {
    return this.#cursor.isDone(position) || this.behind.isDone(device, position);
  }

  /** Moves on to a record, or to the end of a page: there is nothing before it any more. */
  scanTo(position: number): void {
    if (position <= this.scanned) return;
    this.#cursor.skip(this.scanned, position);
    this.scanned = this.#cursor.next(position);
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
    if (position >= this.position) this.#cursor.ack(position, position + 1);
  }

  /** Call inside a write transaction. */
  store(): void {
    const { position } = this;
    // In one transaction with the position, as the records of devices behind lie before it.
    this.behind.store(position);
    if (position === this.#cursor.position) return;
    // An earlier version of the action may have run for fewer records: then a device that is behind has records to do
    // before records that are done.
    this.#cursor.store(position, Math.min(position, this.behind.lowestPosition))();
  }

  #dropDone(): void {
    const open = this.#entries.findIndex(({ isDone }) => !isDone);
    this.#entries = open < 0 ? [] : this.#entries.slice(open);
  }
}
