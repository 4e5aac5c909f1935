import { OperatorError } from '../core/errors.ts';
import { type DataFolder, type Move, tagIndexFormat } from '../store/data-folder.ts';
import type { MoveOptions } from './move.ts';
import { openForMove } from './move-environment.ts';
import type { MoveTask } from './move-messages.ts';
import { MoveReport } from './move-report.ts';
import { runTasks } from './move-threads.ts';

/**
 * Brings a data folder of an older version to this one's format before anything is served: makes the index of
 * tags of every shard that has none. A start that is ended on the way leaves a folder of the older format, which the version
 * that wrote it still takes; the next start begins again.
 * @throws OperatorError when it fails; the signal's reason when it was stopped.
 */
export async function upgradeFolder(folder: DataFolder, options: MoveOptions): Promise<void> {
  // What came with later formats needs nothing rewritten; older versions just must not take the folder any more.
  if (folder.format >= tagIndexFormat) return folder.endUpgrade();
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
  const report = new MoveReport('Indexing the tags of devices', devices);
  const tasks = shardFolders.map((_, shard): MoveTask => ({ type: 'indexTags', shard }));
  try {
    await runTasks(tasks, { move, shards, shardFolders, mapBytesMax }, report, signal);
    folder.endUpgrade();
    report.end();
  } catch (error) {
    report.end();
    if (signal.aborted) throw error;
    throw new OperatorError(
      `Indexing the tags of devices in ${folder.path} failed: ${(error as Error).message}. Nothing is lost: the next start begins again, and the version that wrote the folder still takes it.`,
    );
  }
  console.error(`Indexed the tags of ${devices} devices in ${report.seconds} s.`);
}
