import { OperatorError } from '../../core/errors.ts';
import type { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import type { Move } from '../../storage/lmdb/environment/manifest.ts';
import type { MoveOptions } from './move.ts';
import { openForMove } from './move-environment.ts';
import type { MoveTask } from './move-messages.ts';
import { MoveReport } from './move-report.ts';
import { runTasks } from './move-threads.ts';

/**
 * Brings a data folder of an older version to this one's format before anything is served: makes the indexes of
 * devices of every shard; what else came since needs nothing rewritten. A start that is ended on the way leaves a
 * folder of the older format, which the version that wrote it still takes; the next start begins again.
 * @throws OperatorError when it fails; the signal's reason when it was stopped.
 */
export async function upgradeFolder(folder: DataFolder, options: MoveOptions): Promise<void> {
  const { shards, shardFolders } = folder;
  const { signal } = options;
  const { mapBytesMax } = options.config;
  const move: Move = { from: shards, to: shards, logEnds: [] };
  let devices = 0;
  for (const [shard, path] of shardFolders.entries()) {
    const environment = openForMove(path, shard, move, mapBytesMax);
    devices += environment.sizeOf('devices').records;
    await environment.close();
  }
  const report = new MoveReport('Indexing devices', devices);
  const tasks = shardFolders.map((_, shard): MoveTask => ({ type: 'indexDevices', shard }));
  try {
    await runTasks(tasks, { move, shards, shardFolders, mapBytesMax }, report, signal);
    folder.endUpgrade();
    report.end();
  } catch (error) {
    report.end();
    if (signal.aborted) throw error;
    throw new OperatorError(
      `Indexing the devices in ${folder.path} failed: ${(error as Error).message}. Nothing is lost: the next start begins again, and the version that wrote the folder still takes it.`,
    );
  }
  console.error(`Indexed ${devices} devices in ${report.seconds} s.`);
}
