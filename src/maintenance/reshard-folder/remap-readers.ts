import { type Move, shardOf } from '../../domain/placement.ts';
import { storedDeviceCursors } from '../../features/actions/queue/progress.ts';
import { type ActionJournal, behindTable } from '../../features/actions/tables.ts';
import { type RemappedRecord, remapCursors, settleCursors } from '../../features/records/remap-cursors.ts';
import type { StorageConfig } from '../../storage/config.ts';
import type { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import type { Environment } from '../../storage/lmdb/environment/environment.ts';
import { type DeviceAtPosition, devicesInLog } from '../../storage/lmdb/reshard/move-log.ts';
import { Collection } from '../../storage/tables/collection.ts';
import type { Journal } from '../../storage/tables/journal.ts';
import { openControl, openJournal } from '../environments.ts';
import { openForReshard } from './reshard-environment.ts';

/**
 * Before the switch to fewer shards: stores what consumers, forwarders and actions have done of the removed logs, at the
 * positions these are copied to.
 * @throws the signal's reason when it was stopped
 */
export async function remapReaders(
  folder: DataFolder,
  move: Move,
  config: StorageConfig,
  signal: AbortSignal,
): Promise<void> {
  if (move.to > move.from) return;
  const removed = folder.shardFolders
    .slice(move.to)
    .map((path, index) => openForReshard(path, move.to + index, move, config.mapBytesMax));
  const logs = removed.map((shard) => () => placedLog(shard, move.to));
  try {
    await withJournals(folder, config, async (control, actions) => {
      await remapCursors(control, logs, move, signal);
      await remapCursors(actions, logs, move, signal, (action, shard) =>
        storedDeviceCursors(actions, action, shard),
      );
    });
  } finally {
    for (const shard of removed) await shard.close();
  }
}

/** After the switch: settles cursors in logs and of records that the layout does not have. */
export async function settleReaders(folder: DataFolder, move: Move, config: StorageConfig): Promise<void> {
  await withJournals(folder, config, async (control, actions) => {
    await settleCursors(control, folder.shards, move);
    await settleCursors(actions, folder.shards, move, [new Collection(actions, behindTable)]);
  });
}

async function withJournals(
  folder: DataFolder,
  config: StorageConfig,
  act: (control: Journal, actions: ActionJournal) => Promise<void>,
): Promise<void> {
  const control = openControl(folder.journalFolder('control'), config);
  const actions = openJournal(folder.journalFolder('actions'), config);
  try {
    await act(control, actions);
  } finally {
    await control.close();
    await actions.close();
  }
}

function* placedLog(shard: Environment, shards: number): Generator<Generator<RemappedRecord>> {
  for (const batch of devicesInLog(shard)) yield placed(batch, shards);
}

function* placed(batch: Iterable<DeviceAtPosition>, shards: number): Generator<RemappedRecord> {
  for (const { position, device } of batch) yield { position, device, shard: shardOf(device, shards) };
}
