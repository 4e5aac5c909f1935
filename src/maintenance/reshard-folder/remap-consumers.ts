import { shardOf } from '../../domain/placement.ts';
import {
  type RemappedRecord,
  remapConsumerCursors,
  settleConsumerCursors,
} from '../../features/consumers/remap-cursors.ts';
import type { StorageConfig } from '../../storage/config.ts';
import type { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import type { Environment } from '../../storage/lmdb/environment/environment.ts';
import type { Move } from '../../storage/lmdb/environment/manifest.ts';
import { type DeviceAtPosition, devicesInLog } from '../../storage/lmdb/reshard/move-log.ts';
import { openControl } from '../environments.ts';
import { openForReshard } from './reshard-environment.ts';

/**
 * Before the switch to fewer shards: stores what consumers have done of the removed logs, at the positions these are
 * copied to.
 * @throws the signal's reason when it was stopped
 */
export async function remapConsumers(
  folder: DataFolder,
  move: Move,
  config: StorageConfig,
  signal: AbortSignal,
): Promise<void> {
  if (move.to > move.from) return;
  const going = folder.shardFolders
    .slice(move.to)
    .map((path, index) => openForReshard(path, move.to + index, move, config.mapBytesMax));
  const logs = going.map((shard) => () => placedLog(shard, move.to));
  const journal = openControl(folder.journalFolder('control'), config);
  try {
    await remapConsumerCursors(journal, logs, move, signal);
  } finally {
    await journal.close();
    for (const shard of going) await shard.close();
  }
}

/** After the switch: settles cursors of consumers in logs and records that the layout does not have. */
export async function settleConsumers(folder: DataFolder, move: Move, config: StorageConfig): Promise<void> {
  const journal = openControl(folder.journalFolder('control'), config);
  try {
    await settleConsumerCursors(journal, folder.shards, move);
  } finally {
    await journal.close();
  }
}

function* placedLog(shard: Environment, shards: number): Generator<Generator<RemappedRecord>> {
  for (const batch of devicesInLog(shard)) yield placed(batch, shards);
}

function* placed(batch: Iterable<DeviceAtPosition>, shards: number): Generator<RemappedRecord> {
  for (const { position, device } of batch) yield { position, shard: shardOf(device, shards) };
}
