import { createLog } from '../../src/core/telemetry/log.ts';
import type { Shard } from '../../src/domain/shard.ts';
import type { Environment } from '../../src/storage/lmdb/environment/environment.ts';
import { defaultSweepMilliseconds } from '../../src/storage/lmdb/shard/owner.ts';
import { openShard } from '../../test/harness/storage/shard.ts';
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
  const opened = openShard(folder, { sweepMilliseconds: defaultSweepMilliseconds }, createLog('error'));
  const { shard, environment } = opened;
  const devices = Array.from({ length: deviceCount }, sampleDevice);
  await shard.devices.create(devices.map(({ device }) => device));
  const close = async (): Promise<void> => {
    await opened.close();
    removeFolder(folder);
  };
  return { shard, environment, devices, [Symbol.asyncDispose]: close };
}
