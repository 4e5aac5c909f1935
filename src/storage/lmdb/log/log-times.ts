import { correctionMsMax } from '../../../core/clock.ts';
import { isDamage } from '../environment/store-error.ts';
import type { Table } from '../environment/stored-tables.ts';
import { readSequence, sequenceBytes, sequenceKey } from '../layout/keys.ts';
import { storedJumpsMs } from '../layout/shard-clock.ts';
import type { Tables } from '../layout/tables.ts';
import { countOf, isDamaged, newestTimeMs } from './log-batch.ts';

/** Batches that are looked at in vain for one that can be read, before a time is taken as unknown. */
const damagedInRowMax = 16;
const movedEndKey = Buffer.from('moved');

type LogTables = Pick<Tables, 'log' | 'times'>;

/**
 * From where on batches are of that time or later. A search by halves over positions: the times of batches only
 * grow, since one that was moved says the newest up to there, but for what a correction of the clock takes back.
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

/** When the batch was stored that holds this position, or the next one that there is. */
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
  /** Where the next one begins. */
  end: number;
  lifeMs: number;
}

/** The first batch that begins from `from` on, in front of `end`, and can be read. */
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
 * Where the last moved batch of the log ends, or ended: records of any age stand in front of it. A move that was
 * taken back leaves it too far behind, which costs a search some reading and nothing else.
 */
export function reorderedUntilOf(times: Table): number {
  const bytes = times.getBinary(movedEndKey);
  return bytes === undefined ? 0 : readSequence(bytes, 0);
}

/** Inside a write transaction. */
export function storeReorderedUntil(times: Table, position: number): void {
  times.putSync(movedEndKey, sequenceKey(position));
}

export function isReorderedUntilRecord(key: Buffer, value: Buffer): boolean {
  return key.equals(movedEndKey) && value.length === sequenceBytes;
}
