import type { LogPage, StoredRecord } from '../../../domain/records/record.ts';
import { isDamage } from '../environment/lmdb-error.ts';
import type { Table } from '../environment/stored-tables.ts';
import { readSequence, sequenceKey } from '../layout/keys.ts';
import { storedJumpsMs } from '../layout/shard-clock.ts';
import type { Tables } from '../layout/tables.ts';
import { countOf, decodeBatch, isDamaged } from './log-batch.ts';

/** Reads the records from a position to the end of its batch; the next batch if the position is empty. */
export function readLogPage(tables: Pick<Tables, 'log' | 'times'>, from: number): LogPage {
  const { log, times } = tables;
  const start = sequenceKey(from);
  for (const key of log.getKeys({ start, reverse: true, limit: 1 })) {
    const page = pageOf(log, times, key, from);
    if (page !== undefined) return page;
  }
  for (const key of log.getKeys({ start, limit: 1 })) {
    const page = pageOf(log, times, key, from);
    if (page !== undefined) return page;
  }
  return { records: [], next: from, damaged: false };
}

/** Reads the records of the last batch that begins before a position, as far as they are before it. */
export function readLogPageBefore(tables: Pick<Tables, 'log' | 'times'>, before: number): LogPage {
  const { log, times } = tables;
  if (before > 0) {
    for (const key of log.getKeys({ start: sequenceKey(before - 1), reverse: true, limit: 1 })) {
      const first = readSequence(key, 0);
      const page = pageOf(log, times, key, first);
      const records = page?.records.filter(({ position }) => position < before) ?? [];
      return { records, next: first, damaged: page?.damaged ?? false };
    }
  }
  return { records: [], next: before, damaged: false };
}

/** Undefined for a batch that ends before `from`. */
function pageOf(log: Table, times: Table, key: Buffer, from: number): LogPage | undefined {
  const first = readSequence(key, 0);
  const batch = readBatch(log, key);
  if (batch !== undefined && !isDamaged(batch) && first + countOf(batch) <= from) return undefined;
  const records = batch && recordsIn(batch, first, from);
  if (batch === undefined || records === undefined) {
    // Its number of positions is unknown, so the next batch may start anywhere after it.
    return first < from ? undefined : { records: [], next: first + 1, damaged: true };
  }
  const next = first + countOf(batch);
  // Only after the last access to the batch: another read invalidates the view.
  const jumpsMs = storedJumpsMs(times);
  for (const record of records) record.storedAtMs += jumpsMs;
  return { records, next, damaged: false };
}

/** The records from `from` on, dated by shard life time; undefined if the batch is damaged anywhere. */
function recordsIn(batch: Buffer, first: number, from: number): StoredRecord[] | undefined {
  const records: StoredRecord[] = [];
  try {
    for (const { index, timeMs, ...record } of decodeBatch(batch)) {
      const position = first + index;
      if (position >= from) records.push({ position, ...record, storedAtMs: timeMs });
    }
  } catch {
    return undefined;
  }
  return records;
}

/** A view valid until the next read; undefined if a page of it is damaged. */
function readBatch(log: Table, key: Buffer): Buffer | undefined {
  try {
    return log.getBinaryFast(key);
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}
