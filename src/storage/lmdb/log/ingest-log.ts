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

/** A larger batch is cut, since LMDB needs one run of free pages for each value. */
export const batchBytesMax = 1024 * 1024;
/** Positions that a damaged batch may have taken: more than any batch has records. */
const damagedBatchRecords = 65_536;

export interface LogRecord extends Omit<BatchRecord, 'index'> {
  position: number;
}

/** One value of the log, ready to be put. */
export interface LogBatch {
  key: Buffer;
  value: Buffer;
}

/**
 * The ingest log of a shard: append-only, one value a commit (design.md: a batch as one appended record
 * costs a twentieth of keyed ones), under the position of its first record.
 */
export class IngestLog {
  readonly #table: Table;
  readonly #lifeMs: () => number;
  #next: number;
  #pending: Uint8Array[] = [];
  #pendingBytes = batchHeaderBytes;

  /** `lifeMs`: now, by the shard's own clock. Batches are dated by it, so that no jump makes one look old. */
  constructor(table: Table, lifeMs: () => number) {
    this.#table = table;
    this.#lifeMs = lifeMs;
    this.#next = endOfLog(table);
  }

  /** Inside a write transaction; `flush` before it ends. */
  append(record: Uint8Array): void {
    if (this.#pending.length > 0 && this.#pendingBytes + record.length > batchBytesMax) this.flush();
    this.#pending.push(record);
    this.#pendingBytes += record.length;
  }

  flush(): void {
    if (this.#pending.length === 0) return;
    const { key, value } = this.#take();
    this.#table.putSync(key, value, { append: true });
  }

  /** All of them as one value for the caller to put; undefined when they are too many bytes for one. */
  batch(records: Uint8Array[]): LogBatch | undefined {
    let bytes = batchHeaderBytes;
    for (const { length } of records) bytes += length;
    if (bytes > batchBytesMax) return undefined;
    this.#pending = records;
    this.#pendingBytes = bytes;
    return this.#take();
  }

  /** After a transaction that failed: what it appended never was. */
  rollback(): void {
    this.#pending = [];
    this.#pendingBytes = batchHeaderBytes;
    this.#next = endOfLog(this.#table);
  }

  #take(): LogBatch {
    const taken = {
      key: sequenceKey(this.#next),
      value: encodeBatch(generateUuid(this.#lifeMs()), this.#pending, this.#pendingBytes),
    };
    this.#next += this.#pending.length;
    this.#pending = [];
    this.#pendingBytes = batchHeaderBytes;
    return taken;
  }
}

/** The position of the record that comes next. */
export function endOfLog(table: Table): number {
  for (const { key, value } of table.getRange({ reverse: true, limit: 1 })) {
    return readSequence(key, 0) + (isDamaged(value) ? damagedBatchRecords : countOf(value));
  }
  return 0;
}

/** The records of the log in order, from the batch that holds `position` on. */
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
