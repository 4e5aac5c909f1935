import { EventLoopBudget } from '../../core/async.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { Move } from '../../domain/placement.ts';
import type { Journal } from '../../storage/tables/journal.ts';
import { Cursors } from './cursor.ts';
import { type Range, Ranges } from './ranges.ts';

/** A record's position in its log, its device, and the shard that the reshard copies it to. */
export interface RemappedRecord {
  position: number;
  device: DeviceKey;
  shard: number;
}

/** The records of one log in order, in batches that take little time each. */
export type RemappedLog = () => Iterable<Iterable<RemappedRecord>>;

/** Devices with a cursor of their own in the log of a shard, which holds for their records in place of the reader's. */
export type DeviceCursors = (reader: Buffer, shard: number) => ReadonlyMap<DeviceKey, number>;

/** Waits until the next batch may be read. @throws the signal's reason if it was aborted. */
type Pause = () => Promise<void>;

/**
 * Remaps all cursors before a switch to fewer shards. `logs` are those of the removed shards, which are appended to the
 * others, done records included. The records of one log for one shard stay consecutive and in order there, so what is
 * done of it (all before a position, and some ranges) becomes a few ranges. Rewrites everything, so it may be repeated.
 * @throws the signal's reason if it was aborted.
 */
export async function remapCursors(
  journal: Pick<Journal, 'commit' | 'rows'>,
  logs: readonly RemappedLog[],
  { to, logEnds }: Move,
  signal: AbortSignal,
  devicesOf: DeviceCursors = () => new Map(),
): Promise<void> {
  const budget = new EventLoopBudget();
  /** Logs may be long, and this thread answers health checks meanwhile. */
  const pause: Pause = async () => {
    await budget.take();
    signal.throwIfAborted();
  };
  const cursors = new Cursors(journal);
  const readers = readersOf(cursors);
  if (readers.length === 0) return;
  const ends = [...logEnds];
  const remapped: (Range & { reader: Buffer; shard: number })[] = [];
  for (const [index, log] of logs.entries()) {
    const done = await doneOf(cursors, readers, to + index, log, devicesOf, pause);
    const { counts, before } = await countTargets(log, done.flat(), to, pause);
    for (const [which, reader] of readers.entries()) {
      for (const range of done[which] ?? []) {
        for (let shard = 0; shard < to; shard += 1) {
          const logEnd = ends[shard] ?? 0;
          const from = logEnd + (before.get(range.from)?.[shard] ?? 0);
          const end = logEnd + (before.get(range.to)?.[shard] ?? 0);
          if (from < end) remapped.push({ reader, shard, from, to: end });
        }
      }
    }
    for (const [shard, count] of counts.entries()) ends[shard] = (ends[shard] ?? 0) + count;
  }
  await journal.commit(() => {
    dropAfter(cursors, logEnds);
    for (const reader of readers) clampTo(cursors, reader, logEnds);
    for (const range of remapped) cursors.done.put([range.reader, range.shard, range.from], [range.to]);
  });
}

/**
 * Removes, once a layout with that many shards is in force, the cursors of logs that it does not have and, after a
 * reshard that was taken back, of records that were removed again: nobody has read what is stored at their positions from
 * now on. `others`: further tables whose keys begin with reader and shard.
 */
export async function settleCursors(
  journal: Pick<Journal, 'commit' | 'rows'>,
  shards: number,
  move: Move,
  others: readonly ShardedTable[] = [],
): Promise<void> {
  const cursors = new Cursors(journal);
  await journal.commit(() => {
    if (shards === move.from && move.to < move.from) dropAfter(cursors, move.logEnds);
    for (const table of [cursors.places, cursors.done, ...others]) {
      for (const key of [...table.keys([])]) if (key[1] >= shards) table.delete(key as never);
    }
  });
}

/** A table whose keys begin with reader and shard. */
export interface ShardedTable {
  keys(prefix: readonly []): Iterable<readonly [reader: Buffer, shard: number, ...rest: unknown[]]>;
  delete(key: never): boolean;
}

function readersOf({ places }: Cursors): Buffer[] {
  return [...new Map([...places.keys([])].map(([reader]) => [reader.toString('hex'), reader])).values()];
}

/** For each reader what is done of a log. */
async function doneOf(
  cursors: Cursors,
  readers: readonly Buffer[],
  shard: number,
  log: RemappedLog,
  devicesOf: DeviceCursors,
  pause: Pause,
): Promise<Range[][]> {
  const all = readers.map((reader) => ({
    position: cursors.read(reader, shard).position,
    done: new Ranges(cursors.readDone(reader, shard)),
    devices: devicesOf(reader, shard),
    undone: new Ranges(),
  }));
  const behind = all.filter(({ devices }) => devices.size > 0);
  for (const batch of behind.length > 0 ? log() : []) {
    for (const { position: at, device } of batch) {
      for (const { position, done, devices, undone } of behind) {
        const own = devices.get(device) ?? position;
        if (own <= at && at < position && !done.has(at)) undone.add(at, at + 1);
        if (position <= at && at < own) done.add(at, at + 1);
      }
    }
    await pause();
  }
  return all.map(({ position, done, undone }) => [
    ...undone.gaps(0, position),
    ...done.after(position).map(({ from, to }) => ({ from: Math.max(from, position), to })),
  ]);
}

/** Counts the records that go to each shard: of the whole log, and before every bound of a range. */
async function countTargets(
  log: RemappedLog,
  ranges: readonly Range[],
  shards: number,
  pause: Pause,
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
function dropAfter({ done }: Cursors, logEnds: readonly number[]): void {
  for (const key of [...done.keys([])]) {
    const [, shard, from] = key;
    if (from >= (logEnds[shard] ?? Number.POSITIVE_INFINITY)) done.delete(key);
  }
}

/** Caps positions at the log ends: beyond them are copied records. Runs inside a write transaction. */
function clampTo(cursors: Cursors, reader: Buffer, logEnds: readonly number[]): void {
  for (const [shard, end] of logEnds.entries()) {
    const { position, lost } = cursors.read(reader, shard);
    if (position > end) cursors.places.put([reader, shard], [end, lost]);
  }
}
