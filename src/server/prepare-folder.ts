import { checkEnvironment } from '../storage/lmdb/environment/check-environment.ts';
import { type DataFolder, journalNames } from '../storage/lmdb/environment/data-folder.ts';
import type { Config } from './configuration/config.ts';
import type { Readiness } from './readiness.ts';

export interface Preparation {
  folder: DataFolder;
  /** How many it is to have. */
  shards: number;
  config: Config;
  /** Ends what may take minutes; the next start goes on with it. */
  signal: AbortSignal;
  readiness: Readiness;
}

/**
 * Before anything is served: looks at every environment, and brings the folder to the shard count of this start.
 * @throws OperatorError for what an operator can mend; the signal's reason when it was stopped.
 */
export async function prepareFolder(preparation: Preparation): Promise<void> {
  const { folder, shards, config, signal, readiness } = preparation;
  if (!folder.isNew) {
    const journals = journalNames.map((name) => folder.journalFolder(name));
    for (const path of [folder.registryFolder, ...folder.shardFolders, ...journals]) checkEnvironment(path);
  }
  if (folder.move !== undefined || folder.shards !== shards) {
    const msg = `The data is moving from ${folder.move?.from ?? folder.shards} to ${shards} shards.`;
    readiness.phase = { reason: 'moving', msg };
    const { moveToShards } = await import('../maintenance/reshard-folder/move.ts');
    await moveToShards(folder, shards, { config, signal });
  }
}
