import { existsSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { OperatorError } from '../../core/errors.ts';
import type { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import { recordsFile } from '../../storage/lmdb/environment/database-file.ts';
import { syncPath } from '../../storage/lmdb/environment/durable.ts';
import type { Move } from '../../storage/lmdb/environment/manifest.ts';
import { sizeOfDevices } from '../../storage/lmdb/reshard/move-devices.ts';
import { endOfShardLog, sizeOfLog } from '../../storage/lmdb/reshard/move-log.ts';
import { dropActionsOfShards, type ReshardConfig, remapActions } from './move-actions.ts';
import { remapConsumers, settleConsumers } from './move-consumers.ts';
import { openForMove } from './move-environment.ts';
import { checkRoom, MoveReport, type ShardSize } from './move-report.ts';
import type { MoveTask } from './move-threads.ts';
import { type MovePhase, runTasks } from './move-threads.ts';

export interface MoveOptions {
  config: ReshardConfig;
  /** Stops at the next step; the next start carries on from there. */
  signal: AbortSignal;
}

/**
 * Brings the data folder to another shard count before anything is served. What moves is copied first, while
 * the old layout stays whole; then the manifest is switched; then what moved is removed from where it was. A
 * crash leaves one of two layouts whole and the other's traces to be removed, which the next start does first
 * of all (`removeTraces`), whatever count it is for.
 * @throws OperatorError when there is no room for it; the signal's reason when it was stopped.
 */
export async function moveToShards(folder: DataFolder, shards: number, options: MoveOptions): Promise<void> {
  if (folder.move !== undefined) await finishEarlierMove(folder, folder.move, options);
  if (folder.shards === shards) return;
  const from = folder.shards;
  const sizes = await measure(folder, shards, options);
  checkRoom(folder.path, sizes, shards, options.config.mapBytesMax);
  const move: Move = { from, to: shards, logEnds: sizes.map(({ logEnd }) => logEnd).slice(0, shards) };
  const report = new MoveReport(`Moving from ${from} to ${shards} shards`, recordsOf(sizes, move));
  try {
    // Of a layout that is not in the manifest: a power cut may have brought its folders back.
    removeFolders(folder, from);
    folder.beginMove(move);
    const devices = await copy(folder, move, report, options);
    await remapActions(folder, move, options.config);
    await remapConsumers(folder, move, options.config, options.signal);
    folder.switchLayout();
    await removeTraces(folder, move, report, options);
    report.end();
    console.error(`Moved ${devices} devices from ${from} to ${shards} shards in ${report.seconds} s.`);
  } catch (error) {
    report.end();
    if (options.signal.aborted) throw error;
    throw new OperatorError(
      `Moving ${folder.path} from ${from} to ${shards} shards failed: ${(error as Error).message}. Nothing is lost: it has ${folder.shards} shards now, and the next start removes what else the move has left.`,
    );
  }
}

/** An earlier start was ended in the midst of a move: carries on behind the switch, falls back before it. */
async function finishEarlierMove(folder: DataFolder, move: Move, options: MoveOptions): Promise<void> {
  const { shards } = folder;
  const title =
    shards === move.to ? `Finishing the move to ${shards} shards` : `Falling back to ${shards} shards`;
  const shared = leftIn(folder, move);
  const sizes = shared > 0 ? await measure(folder, shards, options) : [];
  const records = sizes.slice(0, shared).reduce((sum, { devices }) => sum + devices.records, 0);
  const report = new MoveReport(title, records);
  await removeTraces(folder, move, report, options);
  report.end();
  console.error(`${title} took ${report.seconds} s.`);
}

async function copy(
  folder: DataFolder,
  move: Move,
  report: MoveReport,
  options: MoveOptions,
): Promise<number> {
  const { from, to } = move;
  const targets = folder.foldersOf(to).slice(from);
  // All of them, also one that no device moves to.
  for (const [index, path] of targets.entries()) {
    await openForMove(path, from + index, move, options.config.mapBytesMax).close();
  }
  const tasks: MoveTask[] = [];
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

/** Of the layout that is not the whole one. Can be stopped and repeated at any point. */
async function removeTraces(
  folder: DataFolder,
  move: Move,
  report: MoveReport,
  options: MoveOptions,
): Promise<void> {
  removeFolders(folder, folder.shards);
  await dropActionsOfShards(folder, options.config);
  await settleConsumers(folder, move, options.config);
  const tasks = Array.from(
    { length: leftIn(folder, move) },
    (_, shard): MoveTask => ({
      type: 'remove',
      shard,
    }),
  );
  await runTasks(tasks, phaseOf(folder, move, options), report, options.signal);
  // Not before every shard holds its own devices alone: counts belong to fleets, which are in all shards.
  const counts = Array.from({ length: folder.shards }, (_, shard): MoveTask => ({ type: 'count', shard }));
  await runTasks(counts, phaseOf(folder, move, options), report, options.signal);
  folder.endMove();
}

/**
 * How many shards, from the first, hold records of the layout that is not the whole one. What is new or given
 * up goes with its folder; the rest is in the shards that both layouts have: copied to them by a move to
 * fewer that falls back, or copied from them by a move to more that does not.
 */
function leftIn({ shards }: DataFolder, { from, to }: Move): number {
  return shards === Math.max(from, to) ? Math.min(from, to) : 0;
}

function phaseOf(folder: DataFolder, move: Move, { config: { mapBytesMax } }: MoveOptions): MovePhase {
  const shardFolders = folder.foldersOf(Math.max(move.from, move.to));
  return { move, shards: folder.shards, shardFolders, mapBytesMax };
}

/** Those of shards that a layout of that many does not have. */
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
  { config: { mapBytesMax } }: MoveOptions,
): Promise<ShardSize[]> {
  const move: Move = { from: folder.shards, to, logEnds: [] };
  const sizes: ShardSize[] = [];
  for (const [shard, path] of folder.shardFolders.entries()) {
    const environment = openForMove(path, shard, move, mapBytesMax);
    sizes.push({
      devices: sizeOfDevices(environment),
      log: sizeOfLog(environment),
      logEnd: endOfShardLog(environment),
    });
    await environment.close();
  }
  return sizes;
}

/** How many records the move passes in all. */
function recordsOf(sizes: readonly ShardSize[], { from, to }: Move): number {
  let records = 0;
  for (const { devices, log } of sizes.slice(to < from ? to : 0)) {
    // Growing passes them twice: to copy and to remove.
    records += to < from ? devices.records + log.records : 2 * devices.records;
  }
  return records;
}
