import { existsSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { OperatorError } from '../../core/errors.ts';
import { syncPath } from '../../core/replace-file.ts';
import type { Move } from '../../domain/placement.ts';
import type { StorageConfig } from '../../storage/config.ts';
import type { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import { recordsFile } from '../../storage/lmdb/environment/database-file.ts';
import { sizeOfDevices } from '../../storage/lmdb/reshard/move-devices.ts';
import { endOfShardLog, sizeOfLog } from '../../storage/lmdb/reshard/move-log.ts';
import { ProgressReport } from '../progress-report.ts';
import { remapReaders, settleReaders } from './remap-readers.ts';
import { openForReshard } from './reshard-environment.ts';
import { checkRoom, type ShardSize } from './reshard-room.ts';
import type { ReshardTask } from './reshard-threads.ts';
import { type ReshardPhase, runTasks } from './reshard-threads.ts';

export interface ReshardFolderOptions {
  config: StorageConfig;
  /** Stops at the next step; the next start continues from there. */
  signal: AbortSignal;
}

/**
 * Reshards the data folder before anything is served. Copies first, while the old layout stays complete; then switches
 * the manifest; then removes what moved from where it was. A crash leaves one layout complete, and traces of the other,
 * which the next start removes first (`removeTraces`), whatever count it is for.
 * @throws OperatorError without room for it; the signal's reason when it was stopped
 */
export async function reshardFolder(
  folder: DataFolder,
  shards: number,
  options: ReshardFolderOptions,
): Promise<void> {
  if (folder.move !== undefined) await finishEarlierReshard(folder, folder.move, options);
  if (folder.shards === shards) return;
  const from = folder.shards;
  const sizes = await measure(folder, shards, options);
  checkRoom(folder.path, sizes, shards, options.config.mapBytesMax);
  const move: Move = { from, to: shards, logEnds: sizes.map(({ logEnd }) => logEnd).slice(0, shards) };
  const report = new ProgressReport(`Resharding from ${from} to ${shards} shards`, recordsOf(sizes, move));
  try {
    // Removes folders of a layout that is not in the manifest: a power cut may have brought them back.
    removeFolders(folder, from);
    folder.beginMove(move);
    const devices = await copy(folder, move, report, options);
    await remapReaders(folder, move, options.config, options.signal);
    folder.switchLayout();
    await removeTraces(folder, move, report, options);
    report.end();
    console.error(`Moved ${devices} devices from ${from} to ${shards} shards in ${report.seconds} s.`);
  } catch (error) {
    report.end();
    if (options.signal.aborted) throw error;
    throw new OperatorError(
      `Resharding ${folder.path} from ${from} to ${shards} shards failed: ${(error as Error).message}. Nothing is lost: it has ${folder.shards} shards now, and the next start removes the traces of the rest.`,
    );
  }
}

/** Finishes resharding that an earlier start was interrupted in: continues after the switch, falls back before it. */
async function finishEarlierReshard(
  folder: DataFolder,
  move: Move,
  options: ReshardFolderOptions,
): Promise<void> {
  const { shards } = folder;
  const title =
    shards === move.to ? `Finishing resharding to ${shards} shards` : `Falling back to ${shards} shards`;
  const shared = leftIn(folder, move);
  const sizes = shared > 0 ? await measure(folder, shards, options) : [];
  const records = sizes.slice(0, shared).reduce((sum, { devices }) => sum + devices.records, 0);
  const report = new ProgressReport(title, records);
  await removeTraces(folder, move, report, options);
  report.end();
  console.error(`${title} took ${report.seconds} s.`);
}

async function copy(
  folder: DataFolder,
  move: Move,
  report: ProgressReport,
  options: ReshardFolderOptions,
): Promise<number> {
  const { from, to } = move;
  const targets = folder.foldersOf(to).slice(from);
  // Creates all of them, even without devices.
  for (const [index, path] of targets.entries()) {
    await openForReshard(path, from + index, move, options.config.mapBytesMax).close();
  }
  const tasks: ReshardTask[] = [];
  if (to < from) tasks.push({ type: 'copyLogs' });
  for (let shard = to < from ? to : 0; shard < from; shard += 1) tasks.push({ type: 'copy', shard });
  const devices = await runTasks(tasks, phaseOf(folder, move, options), report, options.signal);
  for (const path of targets) {
    syncPath(join(path, recordsFile));
    syncPath(path);
    syncPath(dirname(path));
  }
  return devices;
}

/** Removes the incomplete layout. Can be stopped and repeated at any point. */
async function removeTraces(
  folder: DataFolder,
  move: Move,
  report: ProgressReport,
  options: ReshardFolderOptions,
): Promise<void> {
  removeFolders(folder, folder.shards);
  await settleReaders(folder, move, options.config);
  const tasks = Array.from(
    { length: leftIn(folder, move) },
    (_, shard): ReshardTask => ({
      type: 'remove',
      shard,
    }),
  );
  await runTasks(tasks, phaseOf(folder, move, options), report, options.signal);
  // Not before every shard holds only its own devices: counts belong to fleets, which are in all shards.
  const counts = Array.from({ length: folder.shards }, (_, shard): ReshardTask => ({ type: 'count', shard }));
  await runTasks(counts, phaseOf(folder, move, options), report, options.signal);
  folder.endMove();
}

/**
 * Number of shards, from the first, with traces of the incomplete layout. New or removed shards go with their folders;
 * the rest is in the shards of both layouts: copied there by a shrink that falls back, or copied from there by growth
 * that does not.
 */
function leftIn({ shards }: DataFolder, { from, to }: Move): number {
  return shards === Math.max(from, to) ? Math.min(from, to) : 0;
}

function phaseOf(
  folder: DataFolder,
  move: Move,
  { config: { mapBytesMax } }: ReshardFolderOptions,
): ReshardPhase {
  const shardFolders = folder.foldersOf(Math.max(move.from, move.to));
  return { move, shards: folder.shards, shardFolders, mapBytesMax };
}

/** Removes the folders of shards beyond `shards`. */
function removeFolders(folder: DataFolder, shards: number): void {
  const parent = join(folder.path, 'shards');
  if (!existsSync(parent)) return;
  for (const name of readdirSync(parent)) {
    if (Number(name) >= shards) rmSync(join(parent, name), { recursive: true });
  }
  syncPath(parent);
}

async function measure(
  folder: DataFolder,
  to: number,
  { config: { mapBytesMax } }: ReshardFolderOptions,
): Promise<ShardSize[]> {
  const move: Move = { from: folder.shards, to, logEnds: [] };
  const sizes: ShardSize[] = [];
  for (const [shard, path] of folder.shardFolders.entries()) {
    const environment = openForReshard(path, shard, move, mapBytesMax);
    sizes.push({
      devices: sizeOfDevices(environment),
      log: sizeOfLog(environment),
      logEnd: endOfShardLog(environment),
    });
    await environment.close();
  }
  return sizes;
}

/** Total number of records to read. */
function recordsOf(sizes: readonly ShardSize[], { from, to }: Move): number {
  let records = 0;
  for (const { devices, log } of sizes.slice(to < from ? to : 0)) {
    // Growth reads them twice: to copy and to remove.
    records += to < from ? devices.records + log.records : 2 * devices.records;
  }
  return records;
}
