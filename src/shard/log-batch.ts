import type { DeviceKey } from '../core/identity.ts';
import { isUuid, uuidBytesLength, uuidTimeMs } from '../core/uuid.ts';
import {
  checkLogRecord,
  type DecodedLogRecord,
  decodeLogRecord,
  deviceOfLogRecord,
  endOfLogRecord,
} from './log-record.ts';

/**
 * The values of the ingest log, one a commit. A batch as it was ingested: format 1, the first record's id 16,
 * count 4; then the records. The id of record i is the first id plus i in its last four bytes; its time is
 * the id's, in the shard's life time (clock.ts). A batch that was moved from the logs of other shards: format 2,
 * the newest id up to there 16, count 4; then each record behind its own id, so that a move changes no id.
 */
const ingestedFormat = 1;
const movedFormat = 2;
const countAt = 1 + uuidBytesLength;
export const batchHeaderBytes = countAt + 4;

/** One record without its place in the log. */
export interface BatchRecord extends Omit<DecodedLogRecord, 'end'> {
  /** UUIDv7, 16 bytes. */
  id: Buffer;
}

/** One record as a move takes it along. */
export interface MovedRecord {
  device: DeviceKey;
  id: Buffer;
  bytes: Uint8Array;
}

/** `byteLength`: of the whole batch, which the caller keeps count of. */
export function encodeBatch(firstId: Uint8Array, records: readonly Uint8Array[], byteLength: number): Buffer {
  const bytes = Buffer.allocUnsafe(byteLength);
  let at = writeHeader(bytes, ingestedFormat, firstId, records.length);
  for (const record of records) {
    bytes.set(record, at);
    at += record.length;
  }
  return bytes;
}

/**
 * `newestId` is that of the batch in front of it: what comes behind newer records is not to look older than
 * they are, or trimming, which goes by the front of the log, would take them with it.
 */
export function encodeMovedBatch(records: readonly MovedRecord[], newestId: Buffer): Buffer {
  let byteLength = batchHeaderBytes;
  let newest = newestId;
  for (const { id, bytes } of records) {
    byteLength += uuidBytesLength + bytes.length;
    if (id.compare(newest) > 0) newest = id;
  }
  const batch = Buffer.allocUnsafe(byteLength);
  let at = writeHeader(batch, movedFormat, newest, records.length);
  for (const { id, bytes } of records) {
    batch.set(id, at);
    batch.set(bytes, at + uuidBytesLength);
    at += uuidBytesLength + bytes.length;
  }
  return batch;
}

function writeHeader(bytes: Buffer, format: number, id: Uint8Array, count: number): number {
  bytes.writeUInt8(format, 0);
  bytes.set(id, 1);
  return bytes.writeUInt32BE(count, countAt);
}

/** Too short to be one: what stands in its header is not to be read. */
export function isDamaged(batch: Buffer): boolean {
  return batch.length < batchHeaderBytes;
}

export function countOf(batch: Buffer): number {
  return batch.readUInt32BE(countAt);
}

/** The newest id up to the end of a batch, where it was ingested: its first record's, all of one time. */
export function newestIdOf(batch: Buffer): Buffer {
  return Buffer.from(batch.subarray(1, countAt));
}

/** How many records a batch holds; undefined when it is not exactly what is encoded here. @throws RangeError */
export function countBatch(batch: Buffer): number | undefined {
  const format = batch.readUInt8(0);
  const count = countOf(batch);
  const isMoved = format === movedFormat;
  if ((format !== ingestedFormat && !isMoved) || count === 0 || !isUuid(batch.subarray(1))) return undefined;
  let at = batchHeaderBytes;
  for (let index = 0; index < count; index += 1) {
    if (isMoved && !isUuid(batch.subarray(at))) return undefined;
    const { isSound, end } = checkLogRecord(batch, isMoved ? at + uuidBytesLength : at);
    if (!isSound || end > batch.length) return undefined;
    at = end;
  }
  return at === batch.length ? count : undefined;
}

/** When the newest record of a batch was stored. Those that were ingested together share one time. */
export function newestTimeMs(batch: Buffer): number {
  return uuidTimeMs(batch.subarray(1));
}

/** Where each record begins, and its id. */
function* locate(batch: Buffer): Generator<{ id: Buffer; at: number }> {
  const format = batch.readUInt8(0);
  if (format !== ingestedFormat && format !== movedFormat) throw new Error(`log batch of format ${format}`);
  const count = countOf(batch);
  let at = batchHeaderBytes;
  for (let index = 0; index < count; index += 1) {
    let id: Buffer;
    if (format === movedFormat) {
      id = Buffer.from(batch.subarray(at, at + uuidBytesLength));
      at += uuidBytesLength;
    } else {
      id = Buffer.from(batch.subarray(1, 1 + uuidBytesLength));
      id.writeUInt32BE((id.readUInt32BE(12) + index) % 2 ** 32, 12);
    }
    yield { id, at };
    at = endOfLogRecord(batch, at);
  }
}

/** Whether a batch was moved from the logs of other shards. */
export function isMovedBatch(batch: Buffer): boolean {
  return batch.readUInt8(0) === movedFormat;
}

export function* decodeBatch(batch: Buffer): Generator<BatchRecord> {
  for (const { id, at } of locate(batch)) {
    const { end: _, ...record } = decodeLogRecord(batch, at);
    yield { id, ...record };
  }
}

/** The records of a batch as views of it, for a move. */
export function* splitBatch(batch: Buffer): Generator<MovedRecord> {
  for (const { id, at } of locate(batch)) {
    yield { device: deviceOfLogRecord(batch, at), id, bytes: batch.subarray(at, endOfLogRecord(batch, at)) };
  }
}
