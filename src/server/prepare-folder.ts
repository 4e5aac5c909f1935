import { checkEnvironment } from '../storage/lmdb/environment/check-environment.ts';
import { type DataFolder, journalNames } from '../storage/lmdb/environment/data-folder.ts';
import { formatVersion } from '../storage/lmdb/environment/manifest.ts';
import type { RunningConfig } from './configuration/config.ts';
import type { Readiness } from './readiness.ts';

export interface Preparation {
  folder: DataFolder;
  /** Target shard count. */
  shards: number;
  config: RunningConfig;
  /** Stops an upgrade or a reshard, which may take minutes; the next start continues it. */
  signal: AbortSignal;
  readiness: Readiness;
}

/**
 * Checks every environment before anything is served, upgrades the folder to the format of this program, and reshards
 * it to the shard count of this start. Traces of a killed reshard are upgraded with the shards that they are in.
 * @throws OperatorError for what an operator can fix; the signal's reason when it was stopped.
 */
export async function prepareFolder(preparation: Preparation): Promise<void> {
  const { folder, shards, config, signal, readiness } = preparation;
  if (!folder.isNew) {
    const journals = journalNames.map((name) => folder.journalFolder(name));
    for (const path of [folder.registryFolder, ...folder.shardFolders, ...journals]) checkEnvironment(path);
  }
  if (folder.format < formatVersion) {
    const msg = `The data folder is being upgraded from format ${folder.format} to ${formatVersion}.`;
    readiness.phase = { reason: 'upgrading', msg };
    const { upgradeFolder } = await import('../maintenance/upgrade-folder/upgrade-folder.ts');
    await upgradeFolder(folder, { config, signal });
  }
  if (folder.move !== undefined || folder.shards !== shards) {
    const msg = `The data is moving from ${folder.move?.from ?? folder.shards} to ${shards} shards.`;
    readiness.phase = { reason: 'moving', msg };
    const { reshardFolder } = await import('../maintenance/reshard-folder/reshard-folder.ts');
    await reshardFolder(folder, shards, { config, signal });
  }
}
