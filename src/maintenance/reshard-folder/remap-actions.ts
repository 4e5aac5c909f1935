import { Registry } from '../../declarations/registry.ts';
import type { ActionConfig } from '../../features/actions/config.ts';
import { Actions } from '../../features/actions/declaration/actions.ts';
import { dropShards, remapActionCursors } from '../../features/actions/remap-cursors.ts';
import type { ActionJournal } from '../../features/actions/tables.ts';
import type { StorageConfig } from '../../storage/config.ts';
import type { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import type { Move } from '../../storage/lmdb/environment/manifest.ts';
import { openTables } from '../../storage/lmdb/layout/tables.ts';
import { readLogPage } from '../../storage/lmdb/log/log-page.ts';
import { openJournal, openRegistry } from '../environments.ts';
import { openForReshard } from './reshard-environment.ts';

export type ReshardConfig = StorageConfig & ActionConfig;

/** Before the switch to fewer shards: stores which records of the removed logs actions have still to run for. */
export async function remapActions(folder: DataFolder, move: Move, config: ReshardConfig): Promise<void> {
  if (move.to > move.from) return;
  const environment = openRegistry(folder.registryFolder, config);
  const registry = new Registry(environment, config);
  const actions = new Actions(environment, registry, config);
  const shards = folder.shardFolders.map((path, shard) =>
    openForReshard(path, shard, move, config.mapBytesMax),
  );
  await withJournal(folder, config, async (journal) => {
    await remapActionCursors(
      journal,
      actions
        .all()
        .filter(({ enabled }) => enabled)
        .map((action) => ({ action, version: actions.current(action) })),
      shards.map((shard) => (from) => readLogPage(openTables(shard), from)),
      move,
    );
  });
  for (const shard of shards) await shard.close();
  await registry.close();
}

/** After the switch: drops the cursors of actions in logs of removed shards. */
export async function dropActionsOfShards(folder: DataFolder, config: ReshardConfig): Promise<void> {
  await withJournal(folder, config, (journal) => dropShards(journal, folder.shards));
}

async function withJournal(
  folder: DataFolder,
  config: ReshardConfig,
  act: (journal: ActionJournal) => Promise<void>,
): Promise<void> {
  const journal = openJournal(folder.journalFolder('actions'), config);
  try {
    await act(journal);
  } finally {
    await journal.close();
  }
}
