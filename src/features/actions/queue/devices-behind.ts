import type { DeviceKey } from '../../../core/identity.ts';
import { Collection } from '../../../storage/tables/collection.ts';
import type { TableStore } from '../../../storage/tables/table-store.ts';
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
export class DevicesBehind {
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
