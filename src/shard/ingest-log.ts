import type { DeviceKey } from '../core/identity.ts';
import { deviceKeyLength } from '../core/identity.ts';
import { generateUuid, uuidBytesLength, uuidTimeMs } from '../core/uuid.ts';
import type { Table } from '../store/environment.ts';
import { readDevice, readSequence, sequenceKey } from './keys.ts';
import type { Ingest, RecordKind } from './shard.ts';

/**
 * The ingest log of a shard: append-only, one value a commit (design.md: a batch as one appended record
 * costs a twentieth of keyed ones). Key: the position of the batch's first record. Value: format 1, the
 * first record's id 16, count 4; then per record device 18, kind 1, schema length 1, schema, payload
 * length 3, payload. The id of record i is the first id plus i in its last four bytes; its time is the id's.
 */
const formatVersion = 1;
const headerBytes = 1 + uuidBytesLength + 4;
const recordHeaderBytes = deviceKeyLength + 1 + 1 + 3;
/** A larger batch is cut, since LMDB needs one run of free pages for each value. */
const batchBytesMax = 1024 * 1024;
const kinds: readonly RecordKind[] = ['datapoint', 'message'];

export interface LogRecord {
  position: number;
  /** UUIDv7, 16 bytes. */
  id: Buffer;
  device: DeviceKey;
  kind: RecordKind;
  schema: string;
  payload: Buffer;
}

export class IngestLog {
  readonly #table: Table;
  #next: number;
  #pending: Ingest[] = [];
  #pendingBytes = headerBytes;

  constructor(table: Table) {
    this.#table = table;
    this.#next = endOfLog(table);
  }

  /** Inside a write transaction; `flush` before it ends. */
  append(ingest: Ingest): void {
    const bytes = recordHeaderBytes + ingest.schema.length + ingest.payload.length;
    if (this.#pending.length > 0 && this.#pendingBytes + bytes > batchBytesMax) this.flush();
    this.#pending.push(ingest);
    this.#pendingBytes += bytes;
  }

  flush(): void {
    if (this.#pending.length === 0) return;
    this.#table.putSync(sequenceKey(this.#next), encodeBatch(this.#pending, this.#pendingBytes), {
      append: true,
    });
    this.#next += this.#pending.length;
    this.#pending = [];
    this.#pendingBytes = headerBytes;
  }

  /** After a transaction that failed: what it appended never was. */
  rollback(): void {
    this.#pending = [];
    this.#pendingBytes = headerBytes;
    this.#next = endOfLog(this.#table);
  }

  /** Removes batches from the front whose records are all older, at most `limit`. Answers how many. */
  trim(olderThanMs: number, limit: number): number {
    let removed = 0;
    // The last batch stays whatever its age: it is what tells the next position after a restart.
    const batches = [...this.#table.getRange({ limit: limit + 1 })];
    for (const { key, value } of batches.slice(0, -1)) {
      if (uuidTimeMs(value.subarray(1)) >= olderThanMs) break;
      this.#table.removeSync(key);
      removed += 1;
    }
    return removed;
  }
}

function endOfLog(table: Table): number {
  for (const { key, value } of table.getRange({ reverse: true, limit: 1 })) {
    return readSequence(key, 0) + value.readUInt32BE(1 + uuidBytesLength);
  }
  return 0;
}

function encodeBatch(records: readonly Ingest[], byteLength: number): Buffer {
  const bytes = Buffer.allocUnsafe(byteLength);
  bytes.writeUInt8(formatVersion, 0);
  bytes.set(generateUuid(), 1);
  bytes.writeUInt32BE(records.length, 1 + uuidBytesLength);
  let at = headerBytes;
  for (const { device, kind, schema, payload } of records) {
    at += bytes.write(device, at, 'latin1');
    at = bytes.writeUInt8(kinds.indexOf(kind), at);
    at = bytes.writeUInt8(schema.length, at);
    at += bytes.write(schema, at, 'latin1');
    at = bytes.writeUIntBE(payload.length, at, 3);
    bytes.set(payload, at);
    at += payload.length;
  }
  return bytes;
}

function* decodeBatch(position: number, bytes: Buffer): Generator<LogRecord> {
  const count = bytes.readUInt32BE(1 + uuidBytesLength);
  let at = headerBytes;
  for (let index = 0; index < count; index += 1) {
    const id = Buffer.from(bytes.subarray(1, 1 + uuidBytesLength));
    id.writeUInt32BE((id.readUInt32BE(12) + index) % 2 ** 32, 12);
    const device = readDevice(bytes, at);
    const kind = kinds[bytes.readUInt8(at + deviceKeyLength)] ?? 'datapoint';
    const schemaAt = at + deviceKeyLength + 2;
    const payloadLengthAt = schemaAt + bytes.readUInt8(schemaAt - 1);
    const payloadAt = payloadLengthAt + 3;
    at = payloadAt + bytes.readUIntBE(payloadLengthAt, 3);
    yield {
      position: position + index,
      id,
      device,
      kind,
      schema: bytes.toString('latin1', schemaAt, payloadLengthAt),
      payload: Buffer.from(bytes.subarray(payloadAt, at)),
    };
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
