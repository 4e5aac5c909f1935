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
  storedProgress,
} from '../records/consumer-tables.ts';
import { EventLoopBudget } from '../records/event-loop-budget.ts';

/** Where a record stands in its log, and the shard that a move takes it to. */
export interface PlacedRecord {
  position: number;
  place: number;
}

/** The records of one log in order, in batches that take a moment each. */
export type PlacedLog = () => Iterable<Iterable<PlacedRecord>>;

interface CarriedRange extends Range {
  id: Buffer;
  shard: number;
}

/**
 * Before a move to fewer shards holds: the logs that go are copied behind others, done records and all. Of each such
 * log the records for one shard stand there behind each other, in their order; so what is done of it, which is what
 * is in front of a position and some ranges, is a few ranges there. `logs`: of the shards that go. Noted anew as a
 * whole, so it may be repeated. @throws the signal's reason when it was stopped.
 */
export async function remapConsumerCursors(
  journal: ConsumerJournal,
  logs: readonly PlacedLog[],
  { to, logEnds }: Move,
  signal: AbortSignal,
): Promise<void> {
  const turns = new EventLoopBudget();
  /** The logs may be long, and whoever asks whether the server lives is answered by this thread. */
  const pause = async (): Promise<void> => {
    await turns.take();
    signal.throwIfAborted();
  };
  const ids = [...journal.tables.consumers.getRange({})].map(({ value }) => decodeConsumer(value).id);
  if (ids.length === 0) return;
  const ends = [...logEnds];
  const carried: CarriedRange[] = [];
  for (const [index, log] of logs.entries()) {
    const done = ids.map((id) => doneOf(journal, id, to + index));
    const { counts, before } = await countPlaces(log, done.flat(), to, pause);
    for (const [consumer, id] of ids.entries()) {
      for (const range of done[consumer] ?? []) {
        for (let shard = 0; shard < to; shard += 1) {
          const front = ends[shard] ?? 0;
          const from = front + (before.get(range.from)?.[shard] ?? 0);
          const end = front + (before.get(range.to)?.[shard] ?? 0);
          if (from < end) carried.push({ id, shard, from, to: end });
        }
      }
    }
    for (const [shard, count] of counts.entries()) ends[shard] = (ends[shard] ?? 0) + count;
  }
  await journal.commit(() => {
    dropBehind(journal, logEnds);
    for (const id of ids) keepWithin(journal, id, logEnds);
    for (const { id, shard, from, to: end } of carried) {
      journal.tables.consumerDone.putSync(doneKey(id, shard, from), positionValue(end));
    }
  });
}

/**
 * Once a layout of so many shards holds: what was kept of logs that it does not have and, where the move fell back,
 * of records that were taken away again. What is stored at their positions from now on is nobody's yet.
 */
export async function settleConsumerCursors(
  journal: ConsumerJournal,
  shards: number,
  move: Move,
): Promise<void> {
  const { consumerPositions, consumerDone } = journal.tables;
  await journal.commit(() => {
    if (shards === move.from && move.to < move.from) dropBehind(journal, move.logEnds);
    for (const table of [consumerPositions, consumerDone]) {
      for (const key of [...table.getKeys({})]) if (readConsumerShard(key) >= shards) table.removeSync(key);
    }
  });
}

function doneOf(journal: ConsumerJournal, id: Buffer, shard: number): Range[] {
  const { position, done } = storedProgress(journal.tables, id, shard);
  const ranges: Range[] = [];
  for (const { from, to } of [{ from: 0, to: position }, ...done]) {
    const start = Math.max(from, ranges.at(-1)?.to ?? 0);
    if (start < to) ranges.push({ from: start, to });
  }
  return ranges;
}

/** How many records go to each shard: of the whole log, and in front of every bound of a range. */
async function countPlaces(
  log: PlacedLog,
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
    for (const { position, place } of batch) {
      for (let bound = bounds[next]; bound !== undefined && bound <= position; bound = bounds[next]) {
        before.set(bound, [...counts]);
        next += 1;
      }
      counts[place] = (counts[place] ?? 0) + 1;
    }
    // Behind it, for a value that was read is not to be used in another turn.
    await pause();
  }
  for (const bound of bounds.slice(next)) before.set(bound, [...counts]);
  return { counts, before };
}

/** Inside a write transaction. */
function dropBehind({ tables }: ConsumerJournal, logEnds: readonly number[]): void {
  for (const key of [...tables.consumerDone.getKeys({})]) {
    const end = logEnds[readConsumerShard(key)];
    if (end !== undefined && readPosition(key, consumerShardKeyBytes) >= end)
      tables.consumerDone.removeSync(key);
  }
}

/** Inside a write transaction. A place behind the end of its log would be one in what is copied there. */
function keepWithin({ tables }: ConsumerJournal, id: Buffer, logEnds: readonly number[]): void {
  for (const [shard, end] of logEnds.entries()) {
    const { position, lost } = storedProgress(tables, id, shard);
    if (position > end)
      tables.consumerPositions.putSync(consumerShardKey(id, shard), positionValue(end, lost));
  }
}
