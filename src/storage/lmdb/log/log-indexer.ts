import { isDamage } from '../environment/lmdb-error.ts';
import type { Table } from '../environment/stored-tables.ts';
import { readSequence, sequenceKey } from '../layout/keys.ts';
import type { Tables } from '../layout/tables.ts';
import { endOfLog } from './ingest-log.ts';
import { countOf, entriesIn, isDamaged } from './log-batch.ts';
import {
  deviceHashAt,
  groupKey,
  groupOfKey,
  groupPositions,
  isWhole,
  mergedSlice,
  SegmentEntries,
  segmentKey,
  segmentPositions,
  segmentsPerGroup,
  sliceKey,
  slicesPerGroup,
} from './log-index.ts';

/** Bounds of a step, as of the trimmer's: it is done on the thread that answers devices. */
const stepBytesMax = 256 * 1024;
const slicesPerStep = 4;
const segmentsPerStep = 4;
/**
 * The index usually has a tenth of the log's bytes. Where it has so large a share, retention has cut most records out
 * of what it covers, and it is made anew.
 */
const shareMax = 1 / 2;
const remakeBytesMin = 64 * 1024 * 1024;

/** The changes of one transaction; none if a step only read. */
export type IndexStep = readonly { key: Buffer; value: Buffer | undefined }[];

export interface LogIndexerOptions {
  tables: Pick<Tables, 'log' | 'logIndex'>;
  /** Bytes on disk of the log and of its index. */
  sizes(): { logBytes: number; indexBytes: number };
}

/**
 * Makes the index of the log by device (log-index.ts) out of the log itself, behind the commits: appending costs
 * nothing, and whatever has changed the log meanwhile, a crash, a reshard, a copy or an older version, the index
 * follows. New records come first, then what is missing of older ones, from the newest group on.
 */
export class LogIndexer {
  readonly #log: Table;
  readonly #index: Table;
  readonly #sizes: LogIndexerOptions['sizes'];
  /** Groups known to be whole: from the first up to the second. */
  #wholeFrom: number | undefined;
  #wholeTo = 0;
  /** Number of the first segment, from the front of the log, that is not known to be there. */
  #nextSegment = 0;
  /** The group that is made anew next, if any is. */
  #remadeTo: number | undefined;
  #bytesWhenRemade = 0;

  constructor({ tables, sizes }: LogIndexerOptions) {
    this.#log = tables.log;
    this.#index = tables.logIndex;
    this.#sizes = sizes;
  }

  /**
   * Yields the steps of one pass: all that is new, and one group of what is older. Commit each before requesting the next;
   * a pass may be abandoned between two.
   */
  *steps(): Generator<IndexStep> {
    const end = endOfLog(this.#log);
    const front = Math.floor(frontOf(this.#log, end) / groupPositions);
    yield* this.#drop(front);
    const open = Math.floor(end / groupPositions);
    if (this.#wholeFrom === undefined) {
      this.#wholeFrom = open;
      this.#wholeTo = open;
    }
    if (this.#nextSegment <= Math.floor(end / segmentPositions) - 1 || this.#wholeTo < open) {
      for (; this.#wholeTo < open; this.#wholeTo += 1) yield* this.#make(this.#wholeTo);
      yield* this.#makeSegments(open, end);
      this.#nextSegment = Math.floor(end / segmentPositions);
    }
    if (this.#wholeFrom > front) {
      yield* this.#make(this.#wholeFrom - 1);
      this.#wholeFrom -= 1;
    } else yield* this.#remake(front, open);
  }

  /** Removes what is before the log's front. */
  *#drop(front: number): Generator<IndexStep> {
    for (;;) {
      const [first] = [...this.#index.getKeys({ end: groupKey(front), limit: 1 })];
      if (first === undefined) return;
      yield this.#removal(groupOfKey(first));
    }
  }

  #removal(group: number): IndexStep {
    const keys = [...this.#index.getKeys({ start: groupKey(group), end: groupKey(group + 1) })];
    return keys.map((key) => ({ key: Buffer.from(key), value: undefined }));
  }

  /** Indexes a whole group. */
  *#make(group: number): Generator<IndexStep> {
    if (isWhole(this.#index, group)) return;
    yield* this.#makeSegments(group, (group + 1) * groupPositions);
    yield* this.#slice(group);
  }

  *#makeSegments(group: number, end: number): Generator<IndexStep> {
    for (let number = 0; number < segmentsPerGroup; number += 1) {
      const from = group * groupPositions + number * segmentPositions;
      if (from + segmentPositions > end) return;
      if (!this.#index.doesExist(segmentKey(group, number))) yield* this.#makeSegment(group, number);
    }
  }

  *#makeSegment(group: number, number: number): Generator<IndexStep> {
    const origin = group * groupPositions;
    const from = origin + number * segmentPositions;
    const to = from + segmentPositions;
    const entries = new SegmentEntries();
    for (let position: number | undefined = from; position !== undefined; ) {
      if (position !== from) yield [];
      position = this.#readStep(position, from, to, (hash, at) => entries.add(hash, at - origin));
    }
    yield [{ key: segmentKey(group, number), value: entries.sorted() }];
  }

  /** Passes some batches' records between the two positions; returns where to go on, if there are more. */
  #readStep(
    position: number,
    from: number,
    to: number,
    onRecord: (hash: number, position: number) => void,
  ): number | undefined {
    const [within] = [...this.#log.getKeys({ start: sequenceKey(position), reverse: true, limit: 1 })];
    let bytes = 0;
    for (const key of this.#log.getKeys({ start: within ?? sequenceKey(position), end: sequenceKey(to) })) {
      const first = readSequence(key, 0);
      if (bytes >= stepBytesMax) return first;
      const batch = readable(this.#log, key);
      if (batch === undefined) continue;
      bytes += batch.length;
      try {
        for (const { index, at } of entriesIn(batch)) {
          const one = first + index;
          if (one >= from && one < to) onRecord(deviceHashAt(batch, at), one);
        }
      } catch {
        // What does not decode has no device: no reader finds it either.
      }
    }
    return undefined;
  }

  /** Puts a group's slices in the place of its segments. */
  *#slice(group: number): Generator<IndexStep> {
    const keys = Array.from({ length: segmentsPerGroup }, (_, number) => segmentKey(group, number));
    const segments: Buffer[] = [];
    for (const key of keys) {
      const segment = this.#index.getBinary(key);
      if (segment !== undefined) segments.push(segment);
      if (segments.length % segmentsPerStep === 0) yield [];
    }
    for (let from = 0; from < slicesPerGroup; from += slicesPerStep) {
      const puts = Array.from({ length: slicesPerStep }, (_, index) => ({
        key: sliceKey(group, from + index),
        value: mergedSlice(segments, from + index),
      }));
      const isLast = from + slicesPerStep === slicesPerGroup;
      yield isLast ? [...puts, ...keys.map((key) => ({ key, value: undefined }))] : puts;
    }
  }

  /** Makes the whole groups anew where most of their records are gone, each time that the index has doubled. */
  *#remake(front: number, open: number): Generator<IndexStep> {
    if (this.#remadeTo === undefined) {
      const { logBytes, indexBytes } = this.#sizes();
      if (indexBytes <= Math.max(remakeBytesMin, logBytes * shareMax, 2 * this.#bytesWhenRemade)) return;
    }
    const group = Math.max(front, this.#remadeTo ?? front);
    if (group < open) {
      yield this.#removal(group);
      yield* this.#make(group);
      this.#remadeTo = group + 1;
      return;
    }
    this.#remadeTo = undefined;
    this.#bytesWhenRemade = this.#sizes().indexBytes;
  }
}

function frontOf(log: Table, end: number): number {
  for (const key of log.getKeys({ limit: 1 })) return readSequence(key, 0);
  return end;
}

/** A view valid until the next read; undefined if it is damaged. */
function readable(log: Table, key: Buffer): Buffer | undefined {
  try {
    const batch = log.getBinaryFast(key);
    return batch === undefined || isDamaged(batch) || countOf(batch) === 0 ? undefined : batch;
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}
