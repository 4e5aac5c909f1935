import type { ActionJournal } from './tables.ts';
import { actionKey, actionShardKey, numberValue, removeActionRows } from './tables.ts';

/** Entries of one table that one transaction removes. */
const removedMax = 1_000;

/** The action takes notice of what is stored from now on, and of nothing before. Durable when it settles. */
export async function startAtEnds(
  journal: ActionJournal,
  id: string,
  logEnds: readonly number[],
): Promise<void> {
  const action = actionKey(id);
  const { tables } = journal;
  await journal.commit(() => {
    removeActionRows(tables.done, action);
    removeActionRows(tables.behind, action);
    removeActionRows(tables.carried, action);
    for (const [shard, end] of logEnds.entries()) {
      tables.positions.putSync(actionShardKey(action, shard), numberValue(end));
    }
  });
}

/** Removes all there is of a deleted action but the mails that it has sent already. */
export async function forgetAction(journal: ActionJournal, id: string): Promise<void> {
  const action = actionKey(id);
  const { outbox: _, ...tables } = journal.tables;
  for (const table of Object.values(tables)) {
    let removed: number;
    do {
      removed = 0;
      await journal.commit(() => {
        removed = removeActionRows(table, action, removedMax);
      });
    } while (removed === removedMax);
  }
}
