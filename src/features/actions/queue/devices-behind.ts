import type { DeviceKey } from '../../../core/identity.ts';
import type { ActionJournal } from '../tables.ts';
import { actionShardKeyBytes, numberValue, rangeOf, readNumber } from '../tables.ts';

interface Place {
  /** Its first record that is not done. One number tells all, for the records of a device are done in their order. */
  position: number;
  /** From where its records are to be read, which the others have passed; undefined: it is where they are. */
  next: number | undefined;
  /** Of its records in this log. */
  inHand: number;
}

/** As it is on disk: the places of devices that are behind in that log. */
export function* storedPlaces(
  tables: ActionJournal['tables'],
  shardKey: Buffer,
): Generator<{ device: DeviceKey; position: number }> {
  for (const { key, value } of tables.behind.getRange(rangeOf(shardKey))) {
    yield { device: key.toString('latin1', actionShardKeyBytes) as DeviceKey, position: readNumber(value) };
  }
}

/**
 * Devices that have a place of their own in the log of one shard, so that nobody waits for them: some thousand of
 * their records may stand between those of others, and this is all there is to keep of them.
 */
export class DevicesBehind {
  readonly #tables: ActionJournal['tables'];
  readonly #key: Buffer;
  readonly #places = new Map<DeviceKey, Place>();
  readonly #changed = new Set<DeviceKey>();

  /** `scanned`: where the action begins to look. Who is before that has records that were passed. */
  constructor(tables: ActionJournal['tables'], shardKey: Buffer, scanned: number) {
    this.#tables = tables;
    this.#key = shardKey;
    for (const { device, position } of storedPlaces(tables, shardKey)) {
      this.#places.set(device, { position, next: position < scanned ? position : undefined, inHand: 0 });
    }
  }

  get size(): number {
    return this.#places.size;
  }

  get inHand(): number {
    let inHand = 0;
    for (const place of this.#places.values()) inHand += place.inHand;
    return inHand;
  }

  has(device: DeviceKey): boolean {
    return this.#places.has(device);
  }

  /** Of all of them, the first position that is not done. */
  get lowestPosition(): number {
    let lowest = Number.POSITIVE_INFINITY;
    for (const { position } of this.#places.values()) lowest = Math.min(lowest, position);
    return lowest;
  }

  /** Those with records that were passed, and from where on. */
  *passed(): Generator<[DeviceKey, number]> {
    for (const [device, { next }] of this.#places) if (next !== undefined) yield [device, next];
  }

  nextOf(device: DeviceKey): number | undefined {
    return this.#places.get(device)?.next;
  }

  isDone(device: DeviceKey, position: number): boolean {
    const place = this.#places.get(device);
    return place !== undefined && position < place.position;
  }

  add(device: DeviceKey, place: Place): void {
    this.#places.set(device, place);
    this.#changed.add(device);
  }

  /** It has been read up to there; undefined: as far as the others. */
  moveOn(device: DeviceKey, next: number | undefined): void {
    const place = this.#places.get(device);
    if (place !== undefined) place.next = next;
  }

  take(device: DeviceKey): void {
    const place = this.#places.get(device);
    if (place !== undefined) place.inHand += 1;
  }

  /** A record that was taken is to be read again. */
  putBack(device: DeviceKey, position: number): void {
    const place = this.#places.get(device);
    if (place === undefined) return;
    place.next = position;
    place.inHand -= 1;
  }

  finish(device: DeviceKey, position: number): void {
    const place = this.#places.get(device);
    if (place === undefined) return;
    place.position = position + 1;
    place.inHand -= 1;
    this.#changed.add(device);
  }

  /** `position`: before which everything of the others is done. */
  isStored(position: number): boolean {
    if (this.#changed.size > 0) return false;
    for (const place of this.#places.values()) if (hasCaughtUp(place, position)) return false;
    return true;
  }

  /** Inside the write transaction that stores `position`. */
  store(position: number): void {
    for (const [device, place] of this.#places) {
      const key = Buffer.concat([this.#key, Buffer.from(device, 'latin1')]);
      if (hasCaughtUp(place, position)) {
        this.#tables.behind.removeSync(key);
        this.#places.delete(device);
      } else if (this.#changed.has(device)) this.#tables.behind.putSync(key, numberValue(place.position));
    }
    this.#changed.clear();
  }
}

/** Nothing of it is open, and all it has done lies before what is stored as done: it needs no place any more. */
function hasCaughtUp({ next, inHand, position: own }: Place, position: number): boolean {
  return next === undefined && inHand === 0 && own <= position;
}
