import { ConnectedDevices } from '../../../src/domain/connected-devices.ts';
import type { DeviceVersions } from '../../../src/storage/lmdb/devices/device-versions.ts';
import type { Environment } from '../../../src/storage/lmdb/environment/environment.ts';
import { LmdbShard } from '../../../src/storage/lmdb/shard/lmdb-shard.ts';

/** A shard as a thread reads it while its owner is not there: writes are refused. */
export function openReadingShard(environment: Environment, versions: DeviceVersions): LmdbShard {
  const cell = () => new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  return new LmdbShard({
    environment,
    versions,
    owner: {
      write: (_, { reject }) => reject(new Error('it has no owner here')),
      subscribe: () => Promise.reject(new Error('it has no owner here')),
      presence: new ConnectedDevices(),
    },
    depth: { writes: cell(), bytes: cell() },
    settings: { current: { shardQueueMax: 1, shardQueueBytesMax: 1 } },
  });
}
