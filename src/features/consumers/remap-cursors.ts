import type { Move } from '../../storage/lmdb/environment/manifest.ts';
import {
  type ConsumerJournal,
  consumerShardKey,
  consumerShardKeyBytes,
  decodeConsumer,
  doneKey,
  positionValue,
  type Range,
  readConsumerShard,
  readPosition,
  readStoredCursor,
} from '../records/consumer-tables.ts';
import { EventLoopBudget } from '../records/event-loop-budget.ts';

/** A record's position in its log, and the shard that the reshard copies it to. */
export interface RemappedRecord {
  position: number;
  shard: number;
}

/** The records of one log in order, in batches that take little time each. */
export type RemappedLog = () => Iterable<Iterable<RemappedRecord>>;

interface RemappedRange extends Range {
  id: Buffer;
  shard: number;
}

/**
 * Remaps all consumers' cursors before a switch to fewer shards. `logs` are those of the removed shards, which are
 * appended to the others, done records included. The records of one log for one shard stay consecutive and in order
 * there, so what is done of it (all before a position, and some ranges) becomes a few ranges. Rewrites everything,
 * so it may be repeated. @throws the signal's reason if it was aborted.
 */
export async function remapConsumerCursors(
  journal: ConsumerJournal,
  logs: readonly RemappedLog[],
  { to, logEnds }: Move,
  signal: AbortSignal,
): Promise<void> {
  const budget = new EventLoopBudget();
  /** Logs may be long, and this thread answers health checks meanwhile. */
  const pause = async (): Promise<void> => {
    await budget.take();
    signal.throwIfAborted();
  };
  const ids = [...journal.tables.consumers.getRange({})].map(({ value }) => decodeConsumer(value).id);
  if (ids.length === 0) return;
  const ends = [...logEnds];
  const remapped: RemappedRange[] = [];
  for (const [index, log] of logs.entries()) {
    const done = ids.map((id) => doneOf(journal, id, to + index));
    const { counts, before } = await countTargets(log, done.flat(), to, pause);
    for (const [consumer, id] of ids.entries()) {
      for (const range of done[consumer] ?? []) {
        for (let shard = 0; shard < to; shard += 1) {
          const logEnd = ends[shard] ?? 0;
          const from = logEnd + (before.get(range.from)?.[shard] ?? 0);
          const end = logEnd + (before.get(range.to)?.[shard] ?? 0);
          if (from < end) remapped.push({ id, shard, from, to: end });
        }
      }
    }
    for (const [shard, count] of counts.entries()) ends[shard] = (ends[shard] ?? 0) + count;
  }
  await journal.commit(() => {
    dropAfter(journal, logEnds);
    for (const id of ids) clampTo(journal, id, logEnds);
    for (const { id, shard, from, to: end } of remapped) {
      journal.tables.consumerDone.putSync(doneKey(id, shard, from), positionValue(end));
    }
  });
}

/**
 * Removes, once a layout with that many shards is in force, the cursors of logs that it does not have and, after a
 * reshard that was taken back, of records that were removed again: no consumer has read what is stored at their
 * positions from now on.
 */
export async function settleConsumerCursors(
  journal: ConsumerJournal,
  shards: number,
  move: Move,
): Promise<void> {
  const { consumerPositions, consumerDone } = journal.tables;
  await journal.commit(() => {
    if (shards === move.from && move.to < move.from) dropAfter(journal, move.logEnds);
    for (const table of [consumerPositions, consumerDone]) {
      for (const key of [...table.getKeys({})]) if (readConsumerShard(key) >= shards) table.removeSync(key);
    }
  });
}

function doneOf(journal: ConsumerJournal, id: Buffer, shard: number): Range[] {
  const { position, done } = readStoredCursor(journal.tables, id, shard);
  const ranges: Range[] = [];
  for (const { from, to } of [{ from: 0, to: position }, ...done]) {
    const start = Math.max(from, ranges.at(-1)?.to ?? 0);
    if (start < to) ranges.push({ from: start, to });
  }
  return ranges;
}

/** Counts the records that go to each shard: of the whole log, and before every bound of a range. */
async function countTargets(
  log: RemappedLog,
  ranges: readonly Range[],
  shards: number,
  pause: () => Promise<void>,
): Promise<{ counts: number[]; before: Map<number, number[]> }> {
  const bounds = [...new Set(ranges.flatMap(({ from, to }) => [from, to]))].sort((one, other) => one - other);
  const counts: number[] = Array.from({ length: shards }, () => 0);
  const before = new Map<number, number[]>();
  let next = 0;
  await pause();
  for (const batch of log()) {
    for (const { position, shard } of batch) {
      for (let bound = bounds[next]; bound !== undefined && bound <= position; bound = bounds[next]) {
        before.set(bound, [...counts]);
        next += 1;
      }
      counts[shard] = (counts[shard] ?? 0) + 1;
    }
    // After the batch: a value that was read must not be used in another turn.
    await pause();
  }
  for (const bound of bounds.slice(next)) before.set(bound, [...counts]);
  return { counts, before };
}

/** Removes done ranges from the given log ends on. Runs inside a write transaction. */
function dropAfter({ tables }: ConsumerJournal, logEnds: readonly number[]): void {
  for (const key of [...tables.consumerDone.getKeys({})]) {
    const end = logEnds[readConsumerShard(key)];
    if (end !== undefined && readPosition(key, consumerShardKeyBytes) >= end)
      tables.consumerDone.removeSync(key);
  }
}

/** Caps positions at the log ends: beyond them are copied records. Runs inside a write transaction. */
function clampTo({ tables }: ConsumerJournal, id: Buffer, logEnds: readonly number[]): void {
  for (const [shard, end] of logEnds.entries()) {
    const { position, lost } = readStoredCursor(tables, id, shard);
    if (position > end)
      tables.consumerPositions.putSync(consumerShardKey(id, shard), positionValue(end, lost));
  }
}
