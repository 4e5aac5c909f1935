import { generateUuid, uuidBytesLength, uuidTimeMs } from '../core/uuid.ts';
import type { Table } from '../store/environment.ts';
import { readSequence, sequenceKey } from './keys.ts';
import { type DecodedLogRecord, decodeLogRecord } from './log-record.ts';

/**
 * The ingest log of a shard: append-only, one value a commit (design.md: a batch as one appended record
 * costs a twentieth of keyed ones). Key: the position of the batch's first record. Value: format 1, the
 * first record's id 16, count 4; then the records. The id of record i is the first id plus i in its last four
 * bytes; its time is the id's.
 */
const formatVersion = 1;
const headerBytes = 1 + uuidBytesLength + 4;
/** A larger batch is cut, since LMDB needs one run of free pages for each value. */
const batchBytesMax = 1024 * 1024;
/** Positions that a damaged batch may have taken: more than any batch has records. */
const damagedBatchRecords = 65_536;

export interface LogRecord extends Omit<DecodedLogRecord, 'end'> {
  position: number;
  /** UUIDv7, 16 bytes. */
  id: Buffer;
}

/** One value of the log, ready to be put. */
export interface LogBatch {
  key: Buffer;
  value: Buffer;
}

export class IngestLog {
  readonly #table: Table;
  #next: number;
  #pending: Uint8Array[] = [];
  #pendingBytes = headerBytes;

  constructor(table: Table) {
    this.#table = table;
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
    let bytes = headerBytes;
    for (const { length } of records) bytes += length;
    if (bytes > batchBytesMax) return undefined;
    this.#pending = records;
    this.#pendingBytes = bytes;
    return this.#take();
  }

  /** After a transaction that failed: what it appended never was. */
  rollback(): void {
    this.#pending = [];
    this.#pendingBytes = headerBytes;
    this.#next = endOfLog(this.#table);
  }

  #take(): LogBatch {
    const taken = {
      key: sequenceKey(this.#next),
      value: encodeBatch(this.#pending, this.#pendingBytes),
    };
    this.#next += this.#pending.length;
    this.#pending = [];
    this.#pendingBytes = headerBytes;
    return taken;
  }

  /** Removes batches from the front whose records are all older, at most `limit`. Answers how many. */
  trim(olderThanMs: number, limit: number): number {
    let removed = 0;
    // The last batch stays whatever its age: it is what tells the next position after a restart.
    const batches = [...this.#table.getRange({ limit: limit + 1 })];
    for (const { key, value } of batches.slice(0, -1)) {
      // Damaged, and so of no known age: it stays, and those behind it need not.
      if (value.length < headerBytes) continue;
      if (uuidTimeMs(value.subarray(1)) >= olderThanMs) break;
      this.#table.removeSync(key);
      removed += 1;
    }
    return removed;
  }
}

function endOfLog(table: Table): number {
  for (const { key, value } of table.getRange({ reverse: true, limit: 1 })) {
    if (value.length < headerBytes) return readSequence(key, 0) + damagedBatchRecords;
    return readSequence(key, 0) + value.readUInt32BE(1 + uuidBytesLength);
  }
  return 0;
}

function encodeBatch(records: readonly Uint8Array[], byteLength: number): Buffer {
  const bytes = Buffer.allocUnsafe(byteLength);
  bytes.writeUInt8(formatVersion, 0);
  bytes.set(generateUuid(), 1);
  bytes.writeUInt32BE(records.length, 1 + uuidBytesLength);
  let at = headerBytes;
  for (const record of records) {
    bytes.set(record, at);
    at += record.length;
  }
  return bytes;
}

function* decodeBatch(position: number, bytes: Buffer): Generator<LogRecord> {
  const count = bytes.readUInt32BE(1 + uuidBytesLength);
  let at = headerBytes;
  for (let index = 0; index < count; index += 1) {
    const id = Buffer.from(bytes.subarray(1, 1 + uuidBytesLength));
    id.writeUInt32BE((id.readUInt32BE(12) + index) % 2 ** 32, 12);
    const { end, ...record } = decodeLogRecord(bytes, at);
    at = end;
    yield { position: position + index, id, ...record };
  }
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
    for (const record of decodeBatch(readSequence(key, 0), value)) {
      if (record.position >= position) yield record;
    }
  }
}
