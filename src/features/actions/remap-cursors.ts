import type { LogPage } from '../../domain/records/record.ts';
import type { Move } from '../../storage/lmdb/environment/manifest.ts';
import type { Action, ActionVersion } from './declaration/action.ts';
import { storedPlaces } from './queue/devices-behind.ts';
import { storedLowest, storedPosition } from './queue/queue-progress.ts';
import { Trigger } from './queue/trigger.ts';
import type { ActionJournal } from './tables.ts';
import {
  actionKey,
  actionShardKey,
  carriedKey,
  rangeOf,
  readActionShard,
  readNumber,
  removeActionRows,
} from './tables.ts';

/** One log as a move reads it. */
export type ReadLog = (from: number) => LogPage;

/**
 * Before a move to fewer shards: their logs are about to be copied behind others, done records and all. What
 * is not done yet of those logs is noted by id, so that of the copies those alone are run for. Noted anew as a
 * whole, so it may be repeated, and counts what an earlier move has carried and nobody has run for since.
 */
export async function remapActionCursors(
  journal: ActionJournal,
  actions: readonly { action: Action; version: ActionVersion }[],
  logs: readonly ReadLog[],
  move: Move,
): Promise<void> {
  for (const { action, version } of actions) {
    const id = actionKey(action.id);
    const carried = [...pendingRecords(journal, action, version, logs, move)];
    await journal.commit(() => {
      removeActionRows(journal.tables.carried, id);
      for (const record of carried) {
        journal.tables.carried.putSync(carriedKey(id, record), Buffer.alloc(0));
      }
    });
  }
}

/** What was kept of the logs of shards that a layout does not have, once that layout is the one that holds. */
export async function dropShards(journal: ActionJournal, shards: number): Promise<void> {
  const { positions, done, behind } = journal.tables;
  await journal.commit(() => {
    for (const table of [positions, done, behind]) {
      for (const key of [...table.getKeys({})]) if (readActionShard(key) >= shards) table.removeSync(key);
    }
  });
}

/**
 * Ids of records that the action is still to look at: all in the logs that go, and the carried ones in those that
 * stay. Not of the copies, which stand behind those already: a move that fell back may have noted what has been
 * run for since.
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
    const places = new Map([...storedPlaces(tables, key)].map((place) => [place.device, place.position]));
    let from = storedLowest(tables, id, shard);
    while (from < end) {
      const page = read(from);
      if (page.next === from) break;
      for (const record of page.records) {
        if (record.position >= end) break;
        if (record.position < (places.get(record.device) ?? position)) continue;
        if (done.has(record.position) || !trigger.listensTo(record)) continue;
        const isPending = record.isRelocated
          ? tables.carried.doesExist(carriedKey(id, record.id))
          : shard >= to;
        if (isPending) yield record.id;
      }
      from = page.next;
    }
  }
}
