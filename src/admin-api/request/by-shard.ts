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
  const groups = new Map<Shard, number[]>();
  for (const [index, item] of items.entries()) {
    const shard = shards.of(deviceOf(item));
    const group = groups.get(shard);
    if (group) group.push(index);
    else groups.set(shard, [index]);
  }
  const outcomes: R[] = new Array(items.length);
  await Promise.all(
    [...groups].map(async ([shard, indexes]) => {
      const own = await act(
        shard,
        indexes.map((index) => items[index] as T),
      );
      for (const [at, index] of indexes.entries()) outcomes[index] = own[at] as R;
    }),
  );
  return outcomes;
}
