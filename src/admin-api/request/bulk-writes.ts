import { Mutex } from '../../core/async.ts';
import { groupBy } from '../../core/groups.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { Shard } from '../../domain/shard.ts';

/**
 * Runs `act` on all shards concurrently, each with its own items, and returns the outcomes in the order of the items.
 */
export async function onEachShard<T, R>(
  shards: { of(device: DeviceKey): Shard },
  items: readonly T[],
  deviceOf: (item: T) => DeviceKey,
  act: (shard: Shard, items: readonly T[]) => Promise<readonly R[]>,
): Promise<R[]> {
  const groups = groupBy(items.entries(), ([, item]) => shards.of(deviceOf(item)));
  const outcomes: R[] = new Array(items.length);
  await Promise.all(
    [...groups].map(async ([shard, group]) => {
      const own = await act(
        shard,
        group.map(([, item]) => item),
      );
      for (const [at, [index]] of group.entries()) outcomes[index] = own[at] as R;
    }),
  );
  return outcomes;
}

/** Devices that are written at a time: a millisecond of this thread, and some of each shard's, whose devices wait meanwhile. */
export const bulkDevicesMax = 200;

/**
 * Writes of many devices: imports and changes take turns, whosever they are, or a commit would have those of all, and
 * every device's own write would wait for it.
 */
export class BulkWrites {
  readonly #turns = new Mutex();

  /** Runs a write of up to `bulkDevicesMax` devices when it is its turn. */
  run<T>(write: () => Promise<T>): Promise<T> {
    return this.#turns.run(write);
  }

  /** Writes any number of devices, some at a time, and returns their outcomes in order. */
  async each<T, R>(items: readonly T[], write: (some: readonly T[]) => Promise<readonly R[]>): Promise<R[]> {
    const outcomes: R[] = [];
    for (let start = 0; start < items.length; start += bulkDevicesMax) {
      const some = items.slice(start, start + bulkDevicesMax);
      outcomes.push(...(await this.run(() => write(some))));
    }
    return outcomes;
  }
}
