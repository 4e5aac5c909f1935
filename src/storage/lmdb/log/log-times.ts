import { correctionMsMax } from '../../../core/clock.ts';
import { isDamage } from '../environment/lmdb-error.ts';
import type { Table } from '../environment/stored-tables.ts';
import { readSequence, sequenceBytes, sequenceKey } from '../layout/keys.ts';
import { storedJumpsMs } from '../layout/shard-clock.ts';
import type { Tables } from '../layout/tables.ts';
import { countOf, isDamaged, newestTimeMs } from './log-batch.ts';

/** Damaged batches skipped before a time counts as unknown. */
const damagedInRowMax = 16;
const reorderedUntilKey = Buffer.from('moved');

type LogTables = Pick<Tables, 'log' | 'times'>;

/**
 * The position from which batches are of that time or later. Binary search: the times of batches only grow, since a
 * listed batch has the newest time up to it, except for corrections of the clock.
 */
export function positionAt({ log, times }: LogTables, wallMs: number): number {
  const lifeMs = wallMs - storedJumpsMs(times) - correctionMsMax;
  let low = endKey(log, false);
  let high = endKey(log, true);
  if (low === undefined || high === undefined) return 0;
  high += 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const batch = batchFrom(log, middle, high);
    if (batch === undefined || batch.lifeMs >= lifeMs) high = middle;
    else low = batch.end;
  }
  return low;
}

/** When the batch with this position was stored, or the next existing one. */
export function timeAt({ log, times }: LogTables, position: number): number | undefined {
  for (const key of log.getKeys({ start: sequenceKey(position), reverse: true, limit: 1 })) {
    const first = readSequence(key, 0);
    const batch = batchFrom(log, first, first + 1);
    if (batch !== undefined && position < batch.end) return batch.lifeMs + storedJumpsMs(times);
  }
  const next = batchFrom(log, position, Number.POSITIVE_INFINITY);
  return next && next.lifeMs + storedJumpsMs(times);
}

interface FoundBatch {
  position: number;
  /** Start of the next batch. */
  end: number;
  lifeMs: number;
}

/** The first readable batch that begins in [from, end). */
function batchFrom(log: Table, from: number, end: number): FoundBatch | undefined {
  for (const key of log.getKeys({ start: sequenceKey(from), limit: damagedInRowMax })) {
    const position = readSequence(key, 0);
    if (position >= end) return undefined;
    try {
      const batch = log.getBinaryFast(key);
      if (batch === undefined || isDamaged(batch)) continue;
      return { position, end: position + countOf(batch), lifeMs: newestTimeMs(batch) };
    } catch (error) {
      if (!isDamage(error)) throw error;
    }
  }
  return undefined;
}

function endKey(log: Table, reverse: boolean): number | undefined {
  for (const key of log.getKeys({ reverse, limit: 1 })) return readSequence(key, 0);
  return undefined;
}

/**
 * The end of the last relocated batch: records before it are not ordered by time. An undone reshard leaves the value
 * too high, which only costs a search some reading.
 */
export function reorderedUntilOf(times: Table): number {
  const bytes = times.getBinary(reorderedUntilKey);
  return bytes === undefined ? 0 : readSequence(bytes, 0);
}

/** Call it inside a write transaction. */
export function storeReorderedUntil(times: Table, position: number): void {
  times.putSync(reorderedUntilKey, sequenceKey(position));
}

export function isReorderedUntilRecord(key: Buffer, value: Buffer): boolean {
  return key.equals(reorderedUntilKey) && value.length === sequenceBytes;
}
