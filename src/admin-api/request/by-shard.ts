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
