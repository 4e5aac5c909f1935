import type { LogPage } from '../../domain/records/record.ts';
import type { Move } from '../../storage/lmdb/environment/manifest.ts';
import type { Action, ActionVersion } from './declaration/action.ts';
import { storedCursors } from './queue/devices-behind.ts';
import { storedLowest, storedPosition } from './queue/queue-progress.ts';
import { Trigger } from './queue/trigger.ts';
import type { ActionJournal } from './tables.ts';
import {
  actionKey,
  actionShardKey,
  rangeOf,
  readActionShard,
  readNumber,
  relocatedKey,
  removeActionRows,
} from './tables.ts';

/** Reads one log during a reshard. */
export type ReadLog = (from: number) => LogPage;

/**
 * Prepares a reshard to fewer shards, which copies the logs of the removed shards behind others, done records included.
 * Notes the ids of records that are not done, so that of the copies only those run. Rewrites all of it each time, so it
 * can be repeated, and includes what an earlier reshard noted and no run has done since.
 */
export async function remapActionCursors(
  journal: ActionJournal,
  actions: readonly { action: Action; version: ActionVersion }[],
  logs: readonly ReadLog[],
  move: Move,
): Promise<void> {
  for (const { action, version } of actions) {
    const id = actionKey(action.id);
    const relocated = [...pendingRecords(journal, action, version, logs, move)];
    await journal.commit(() => {
      removeActionRows(journal.tables.relocated, id);
      for (const record of relocated) {
        journal.tables.relocated.putSync(relocatedKey(id, record), Buffer.alloc(0));
      }
    });
  }
}

/** Removes the progress in logs of shards that the layout no longer has, once that layout is in force. */
export async function dropShards(journal: ActionJournal, shards: number): Promise<void> {
  const { positions, done, behind } = journal.tables;
  await journal.commit(() => {
    for (const table of [positions, done, behind]) {
      for (const key of [...table.getKeys({})]) if (readActionShard(key) >= shards) table.removeSync(key);
    }
  });
}

/**
 * Ids of records still pending: all in the logs to be removed, and the relocated ones noted before in those that stay.
 * Excludes copies past the log ends: a reshard that was rolled back may have noted records that have run since.
 */
function* pendingRecords(
  { tables }: ActionJournal,
  action: Action,
  version: ActionVersion,
  logs: readonly ReadLog[],
  { to, logEnds }: Move,
): Generator<Buffer> {
  const id = actionKey(action.id);
  const trigger = new Trigger(action, version);
  for (const [shard, read] of logs.entries()) {
    const key = actionShardKey(id, shard);
    const end = logEnds[shard] ?? Number.POSITIVE_INFINITY;
    const done = new Set([...tables.done.getKeys(rangeOf(key))].map(readNumber));
    const position = storedPosition(tables, id, shard);
    const cursors = new Map(
      [...storedCursors(tables, key)].map((cursor) => [cursor.device, cursor.position]),
    );
    let from = storedLowest(tables, id, shard);
    while (from < end) {
      const page = read(from);
      if (page.next === from) break;
      for (const record of page.records) {
        if (record.position >= end) break;
        if (record.position < (cursors.get(record.device) ?? position)) continue;
        if (done.has(record.position) || !trigger.listensTo(record)) continue;
        const isPending = record.isRelocated
          ? tables.relocated.doesExist(relocatedKey(id, record.id))
          : shard >= to;
        if (isPending) yield record.id;
      }
      from = page.next;
    }
  }
}
