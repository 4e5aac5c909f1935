import { type DeviceKey, deviceKeyLength } from '../core/identity.ts';
import { uuidBytesLength } from '../core/uuid.ts';
import type { Table } from '../store/environment.ts';
import { keyOfBroadcast, readDevice } from './keys.ts';
import type { BroadcastProgress } from './shard.ts';

const nothing = Buffer.alloc(0);

/**
 * Which devices have had the mail of a broadcast, until that is on disk where the broadcast is kept; inside the
 * owner's write transaction. Apart from `sent`, which actions forget in the order of the records they are for.
 */
export class BroadcastMail {
  readonly #table: Table;

  constructor(table: Table) {
    this.#table = table;
  }

  has(broadcast: Uint8Array, device: DeviceKey): boolean {
    return this.#table.doesExist(keyOfBroadcast(broadcast, device));
  }

  remember(broadcast: Uint8Array, device: DeviceKey): void {
    this.#table.putSync(keyOfBroadcast(broadcast, device), nothing);
  }

  /** At most `limit`. Answers how many. */
  forget(active: readonly BroadcastProgress[], limit: number): number {
    const keys = [...forgettable(this.#table, active, limit)];
    for (const key of keys) this.#table.removeSync(key);
    return keys.length;
  }
}

/** Keys of what need not be known any more, at most so many. */
export function* forgettable(
  table: Table,
  active: readonly BroadcastProgress[],
  limit: number,
): Generator<Buffer> {
  const kept = new Map(active.map(({ broadcast, after }) => [Buffer.from(broadcast).toString('hex'), after]));
  let start: Buffer | undefined;
  for (let found = 0; found < limit; ) {
    let hasMore = false;
    for (const key of table.getKeys({ ...(start && { start }), limit: limit - found })) {
      hasMore = true;
      const broadcast = key.subarray(0, uuidBytesLength);
      const after = kept.get(broadcast.toString('hex'));
      if (after !== undefined && readDevice(key, uuidBytesLength) > after) {
        start = behind(broadcast);
        break;
      }
      yield key;
      found += 1;
      start = Buffer.concat([key, Buffer.alloc(1)]);
    }
    if (!hasMore) return;
  }
}

/** Sorts behind every device of a broadcast, and in front of the next one's. */
function behind(broadcast: Buffer): Buffer {
  return Buffer.concat([broadcast, Buffer.alloc(deviceKeyLength + 1, 0xff)]);
}
