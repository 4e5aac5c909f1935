import { carryPositions, settlePositions } from '../consume/carry.ts';
import type { Config } from '../core/config.ts';
import { readLog } from '../shard/ingest-log.ts';
import type { DataFolder, Move } from '../store/data-folder.ts';
import { isMade } from '../store/database-file.ts';
import type { Environment } from '../store/environment.ts';
import { openControl } from './environments.ts';
import { openForMove } from './move-environment.ts';
import { shardOf } from './placement.ts';

/** Before the switch to fewer shards: notes what consumers have done of the logs that go, where it is copied to. */
export async function carryConsumers(folder: DataFolder, move: Move, config: Config): Promise<void> {
  if (move.to > move.from || !isMade(folder.journalFolder('control'))) return;
  const going = folder.shardFolders
    .slice(move.to)
    .map((path, index) => openForMove(path, move.to + index, move, config.mapBytesMax));
  const logs = going.map((shard) => () => placedLog(shard, move.to));
  const journal = openControl(folder.journalFolder('control'), config);
  try {
    await carryPositions(journal, logs, move);
  } finally {
    await journal.close();
    for (const shard of going) await shard.close();
  }
}

/** Once a layout holds: what consumers kept of logs and records that it does not have. */
export async function settleConsumers(folder: DataFolder, move: Move, config: Config): Promise<void> {
  if (!isMade(folder.journalFolder('control'))) return;
  const journal = openControl(folder.journalFolder('control'), config);
  try {
    await settlePositions(journal, folder.shards, move);
  } finally {
    await journal.close();
  }
}

function* placedLog(shard: Environment, shards: number): Generator<{ position: number; place: number }> {
  for (const { position, device } of readLog(shard.table('log'))) {
    yield { position, place: shardOf(device, shards) };
  }
}
