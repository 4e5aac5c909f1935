import { createLog } from '../../src/core/telemetry/log.ts';
import type { Shard } from '../../src/domain/shard.ts';
import { loadConfig, runningConfig } from '../../src/server/configuration/config.ts';
import type { Environment } from '../../src/storage/lmdb/environment/environment.ts';
import { ShardOwner } from '../../src/storage/lmdb/shard/owner.ts';
import {
  allocateCounters,
  counterCellOf,
  openShardEnvironment,
  Shards,
  versionsOf,
} from '../../src/threads/shards.ts';
import { removeFolder, temporaryFolder } from '../servers/temporary-folder.ts';
import { type SampleDevice, sampleDevice } from './samples.ts';

/** One shard with its owner on this thread, on disk in a folder that goes with it, and some devices in it. */
export interface TemporaryShard extends AsyncDisposable {
  shard: Shard;
  environment: Environment;
  devices: readonly SampleDevice[];
}

export async function openTemporaryShard(deviceCount: number): Promise<TemporaryShard> {
  const folder = temporaryFolder();
  const config = runningConfig(loadConfig(undefined, {}, {}).values);
  const counters = allocateCounters(1);
  const environment = openShardEnvironment(folder, 0, 1, config, counters);
  const versions = versionsOf(counters, 0);
  const owner = new ShardOwner(
    environment,
    versions,
    counterCellOf(counters.depths, 0),
    config,
    {
      retention: () => ({
        ttlSeconds: config.settings.current.logRetentionSeconds,
        bytesMax: 0,
        fleets: new Map(),
      }),
      bytesElsewhere: () => new Map(),
    },
    {
      committed: () => {},
      failed: () => {},
      refused: () => {},
      recovered: () => {},
      lettersDropped: () => {},
    },
    createLog('error'),
    () => {},
  );
  const shards = new Shards([environment], [owner], config, counters);
  const [shard] = shards.all;
  if (shard === undefined) throw new Error('one shard was opened');
  const devices = Array.from({ length: deviceCount }, sampleDevice);
  await shard.devices.create(devices.map(({ device }) => device));
  const close = async (): Promise<void> => {
    await owner.close();
    removeFolder(folder);
  };
  return { shard, environment, devices, [Symbol.asyncDispose]: close };
}
