import type { DeviceKey } from '../../../core/identity.ts';
import { isUuid, uuidBytesLength, uuidTimeMs } from '../../../core/uuid.ts';
import {
  type DecodedLogRecord,
  decodeLogRecord,
  deviceOfLogRecord,
  endOfLogRecord,
  headOfLogRecord,
} from './log-record.ts';

/**
 * Values of the ingest log, one per commit. An ingested batch has format 1, the first record's id 16, count 4, then
 * the records. Record i has the first id plus i in its last four bytes, and the id's time, in shard life time
 * (shard-clock.ts). A listed batch, whose records have their own ids and times, since they come from other shards'
 * logs or from a database, has format 2, an id of the newest time up to there 16, count 4, then each record after its
 * id 16, its time 6 and whether it was relocated 1.
 * After records were cut out (log-trimmer.ts) these become formats 3 and 4: the same header, with the count still
 * that of the positions; then runs of remaining records, each after the number of positions skipped 4 and of its
 * records 4.
 */
const ingestedFormat = 1;
const listedFormat = 2;
const cutIngestedFormat = 3;
const cutListedFormat = 4;
export const runHeaderBytes = 8;
const countAt = 1 + uuidBytesLength;
const idLowAt = uuidBytesLength - 4;
export const batchHeaderBytes = countAt + 4;
const timeBytes = 6;
/** Header of each record in a listed batch. */
const listingBytes = uuidBytesLength + timeBytes + 1;

/** A record without its position. */
export interface BatchRecord extends DecodedLogRecord {
  /** Offset from the first position of its batch. */
  index: number;
  /** UUIDv7, 16 bytes. */
  id: Buffer;
  /** Time of storage, in shard life time. */
  timeMs: number;
  /** True if it came from another shard's log. */
  isRelocated: boolean;
}

/** A record with the fields that an ingested batch implies. */
export interface ListedRecord {
  id: Buffer;
  timeMs: number;
  isRelocated: boolean;
  bytes: Uint8Array;
}

/**
 * Encodes an ingested batch of so many records, one or more a piece. `byteLength`: of the whole batch, counted by the
 * caller.
 */
export function encodeBatch(
  firstId: Uint8Array,
  pieces: readonly Uint8Array[],
  count: number,
  byteLength: number,
): Buffer {
  const bytes = Buffer.allocUnsafe(byteLength);
  let at = writeHeader(bytes, ingestedFormat, firstId, count);
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/**
 * Encodes a listed batch. `newestMs` is the previous batch's time: a batch after newer records must not look older
 * than they are, or trimming, which goes by the front of the log, would take them with it.
 */
export function encodeListedBatch(records: readonly ListedRecord[], newestMs: number): Buffer {
  let byteLength = batchHeaderBytes;
  let headMs = newestMs;
  for (const { timeMs, bytes } of records) {
    byteLength += listingBytes + bytes.length;
    headMs = Math.max(headMs, timeMs);
  }
  const batch = Buffer.allocUnsafe(byteLength);
  const headId = Buffer.from(records[0]?.id ?? Buffer.alloc(uuidBytesLength));
  headId.writeUIntBE(headMs, 0, timeBytes);
  let at = writeHeader(batch, listedFormat, headId, records.length);
  for (const { id, timeMs, isRelocated, bytes } of records) {
    batch.set(id, at);
    at = batch.writeUIntBE(timeMs, at + uuidBytesLength, timeBytes);
    at = batch.writeUInt8(isRelocated ? 1 : 0, at);
    batch.set(bytes, at);
    at += bytes.length;
  }
  return batch;
}

/** A batch of one empty position. */
export function emptyBatch(id: Uint8Array): Buffer {
  const batch = Buffer.allocUnsafe(batchHeaderBytes);
  writeHeader(batch, cutIngestedFormat, id, 1);
  return batch;
}

function writeHeader(bytes: Buffer, format: number, id: Uint8Array, count: number): number {
  bytes.writeUInt8(format, 0);
  bytes.set(id, 1);
  return bytes.writeUInt32BE(count, countAt);
}

/** True if it is too short to read its header. */
export function isDamaged(batch: Buffer): boolean {
  return batch.length < batchHeaderBytes;
}

/** The number of positions of a batch. */
export function countOf(batch: Buffer): number {
  return batch.readUInt32BE(countAt);
}

/** Counts the records of a batch; undefined if it is not exactly as encoded here. */
export function countBatch(batch: Buffer): number | undefined {
  let records = 0;
  try {
    for (const { at } of entriesIn(batch)) {
      headOfLogRecord(batch, at);
      records += 1;
    }
  } catch {
    return undefined;
  }
  return records;
}

/** The time of a batch's newest record. All records of an ingested batch share it. */
export function newestTimeMs(batch: Buffer): number {
  return uuidTimeMs(batch.subarray(1));
}

/** Location of a record in its batch. */
export interface BatchEntry {
  /** Offset from the first position. */
  index: number;
  /** Offset of its id and time; undefined if the batch implies them. */
  listingAt: number | undefined;
  at: number;
  end: number;
}

/**
 * Locates the remaining records of a batch, and checks it on the way: all of its bytes but the records' own fields.
 * @throws RangeError for a damaged one
 */
export function* entriesIn(batch: Buffer): Generator<BatchEntry> {
  const format = batch.readUInt8(0);
  const count = countOf(batch);
  expectSound(isFormat(format) && count > 0 && isUuidAt(batch, 1));
  const isListed = isListedBatch(batch);
  const isCut = isCutBatch(batch);
  let at = batchHeaderBytes;
  let index = 0;
  while (isCut ? at < batch.length : index < count) {
    let remaining = count;
    if (isCut) {
      index += batch.readUInt32BE(at);
      remaining = batch.readUInt32BE(at + 4);
      at += runHeaderBytes;
      expectSound(remaining > 0 && index + remaining <= count);
    }
    for (const runEnd = index + remaining; index < runEnd; index += 1) {
      const listingAt = isListed ? at : undefined;
      if (isListed) {
        expectSound(isUuidAt(batch, at));
        at += listingBytes;
      }
      const end = endOfLogRecord(batch, at);
      expectSound(end <= batch.length);
      yield { index, listingAt, at, end };
      at = end;
    }
  }
  expectSound(at === batch.length);
}

function isUuidAt(batch: Buffer, at: number): boolean {
  return isUuid(batch.subarray(at, at + uuidBytesLength));
}

function expectSound(isSound: boolean): void {
  if (!isSound) throw new RangeError('a batch of the log is damaged');
}

function idOf(batch: Buffer, { index, listingAt }: BatchEntry): Buffer {
  if (listingAt === undefined) return idBehind(batch.subarray(1, countAt), index);
  return Buffer.from(batch.subarray(listingAt, listingAt + uuidBytesLength));
}

/** The time of storage, in shard life time. */
export function timeMsOf(batch: Buffer, { listingAt }: BatchEntry): number {
  if (listingAt === undefined) return newestTimeMs(batch);
  return batch.readUIntBE(listingAt + uuidBytesLength, timeBytes);
}

function isRelocated(batch: Buffer, { listingAt }: BatchEntry): boolean {
  return listingAt !== undefined && batch.readUInt8(listingAt + uuidBytesLength + timeBytes) === 1;
}

/** The id of the record at this offset in an ingested batch. */
export function idBehind(first: Buffer, index: number): Buffer {
  const id = Buffer.from(first);
  id.writeUInt32BE((id.readUInt32BE(idLowAt) + index) % 2 ** 32, idLowAt);
  return id;
}

function isFormat(format: number): boolean {
  return format >= ingestedFormat && format <= cutListedFormat;
}

function isListedBatch(batch: Buffer): boolean {
  const format = batch.readUInt8(0);
  return format === listedFormat || format === cutListedFormat;
}

/** True if records were cut out of the batch. */
export function isCutBatch(batch: Buffer): boolean {
  return batch.readUInt8(0) >= cutIngestedFormat;
}

/** The format for the batch with records cut out. */
export function cutFormatOf(batch: Buffer): number {
  return isListedBatch(batch) ? cutListedFormat : cutIngestedFormat;
}

/** Decodes the records of a batch. @throws RangeError for a damaged one, if need be behind some of its records */
export function* decodeBatch(batch: Buffer): Generator<BatchRecord> {
  for (const entry of entriesIn(batch)) yield decodeEntry(batch, entry);
}

/** Decodes one record of a batch. @throws RangeError for a damaged one */
export function decodeEntry(batch: Buffer, entry: BatchEntry): BatchRecord {
  return {
    index: entry.index,
    id: idOf(batch, entry),
    timeMs: timeMsOf(batch, entry),
    isRelocated: isRelocated(batch, entry),
    ...decodeLogRecord(batch, entry.at, entry.end),
  };
}

/** Yields the records of a batch as views, for resharding. */
export function* splitBatch(batch: Buffer): Generator<{ device: DeviceKey; record: ListedRecord }> {
  for (const entry of entriesIn(batch)) {
    const { at, end } = entry;
    const listing = { id: idOf(batch, entry), timeMs: timeMsOf(batch, entry), isRelocated: true };
    yield { device: deviceOfLogRecord(batch, at), record: { ...listing, bytes: batch.subarray(at, end) } };
  }
}
