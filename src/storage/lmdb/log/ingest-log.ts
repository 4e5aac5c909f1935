import { generateUuid } from '../../../core/uuid.ts';
import type { Table } from '../environment/stored-tables.ts';
import { readSequence, sequenceKey } from '../layout/keys.ts';
import {
  type BatchRecord,
  batchHeaderBytes,
  countOf,
  decodeBatch,
  encodeBatch,
  isDamaged,
} from './log-batch.ts';

/** Larger batches are split, since LMDB needs contiguous free pages for each value. */
export const batchBytesMax = 1024 * 1024;
/** Positions skipped for a damaged batch: more than any batch has records. */
const damagedBatchRecords = 65_536;

export interface LogRecord extends Omit<BatchRecord, 'index'> {
  position: number;
}

/** A key and value of the log, ready to be put. */
export interface LogBatch {
  key: Buffer;
  value: Buffer;
}

/**
 * The ingest log of a shard: append-only, one value per commit (a batch as one record costs a twentieth of keyed
 * ones), keyed by the position of its first record.
 */
export class IngestLog {
  readonly #table: Table;
  readonly #lifeMs: () => number;
  #next: number;
  #pending: Uint8Array[] = [];
  #pendingRecords = 0;
  #pendingBytes = batchHeaderBytes;

  /** `lifeMs`: now, in shard life time. It dates batches, so that no clock jump makes one look old. */
  constructor(table: Table, lifeMs: () => number) {
    this.#table = table;
    this.#lifeMs = lifeMs;
    this.#next = endOfLog(table);
  }

  /** Appends one record or several, inside a write transaction; call `flush` before it ends. */
  append(records: Uint8Array, count = 1): void {
    if (this.#pending.length > 0 && this.#pendingBytes + records.length > batchBytesMax) this.flush();
    this.#pending.push(records);
    this.#pendingRecords += count;
    this.#pendingBytes += records.length;
  }

  flush(): void {
    if (this.#pending.length === 0) return;
    const { key, value } = this.#take();
    this.#table.putSync(key, value, { append: true });
  }

  /** Encodes all records as one value for the caller to put; undefined if they exceed one batch. */
  batch(records: Uint8Array[]): LogBatch | undefined {
    let bytes = batchHeaderBytes;
    for (const { length } of records) bytes += length;
    if (bytes > batchBytesMax) return undefined;
    this.#pending = records;
    this.#pendingRecords = records.length;
    this.#pendingBytes = bytes;
    return this.#take();
  }

  /** Discards the appends of a failed transaction. */
  rollback(): void {
    this.#clear();
    this.#next = endOfLog(this.#table);
  }

  #take(): LogBatch {
    const id = generateUuid(this.#lifeMs());
    const taken = {
      key: sequenceKey(this.#next),
      value: encodeBatch(id, this.#pending, this.#pendingRecords, this.#pendingBytes),
    };
    this.#next += this.#pendingRecords;
    this.#clear();
    return taken;
  }

  #clear(): void {
    this.#pending = [];
    this.#pendingRecords = 0;
    this.#pendingBytes = batchHeaderBytes;
  }
}

/** The position of the next record. */
export function endOfLog(table: Table): number {
  for (const { key, value } of table.getRange({ reverse: true, limit: 1 })) {
    return readSequence(key, 0) + (isDamaged(value) ? damagedBatchRecords : countOf(value));
  }
  return 0;
}

/** Yields the records from `position` on, in order. */
export function* readLog(table: Table, position = 0): Generator<LogRecord> {
  for (const { key } of table.getRange({ start: sequenceKey(position), reverse: true, limit: 1 })) {
    yield* readFrom(table, key, position);
    return;
  }
  yield* readFrom(table, sequenceKey(0), position);
}

function* readFrom(table: Table, start: Buffer, position: number): Generator<LogRecord> {
  for (const { key, value } of table.getRange({ start })) {
    const first = readSequence(key, 0);
    for (const { index, ...record } of decodeBatch(value)) {
      if (first + index >= position) yield { position: first + index, ...record };
    }
  }
}
