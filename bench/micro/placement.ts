import { shardOf } from '../../src/domain/placement.ts';
import { type Group, group, repeated } from './microbench.ts';
import { cycled, sampleDevice } from './samples.ts';

/** The shard of a device: a hash of its 18 characters, then a jump for each few shards. */
export async function placement(): Promise<Group> {
  const devices = Array.from({ length: 1_000 }, () => sampleDevice().device.device);
  return group(
    ...[2, 8].map((shards) => ({
      ...repeated('placement hash', (index) => shardOf(cycled(devices, index), shards)),
      conditions: { shards },
    })),
  );
}
