import type { DeviceKey } from '../../../core/identity.ts';
import { isUuid, uuidBytesLength, uuidTimeMs } from '../../../core/uuid.ts';
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
 * the id's, in the shard's life time (shard-clock.ts). A batch of records that have ids and times of their own, since they
 * were moved from the logs of other shards or copied from a database: format 2, an id of the newest time up to there
 * 16, count 4; then each record behind its id 16, its time 6 and whether it was moved 1.
 * Either of them after records were cut out of it (log-cut.ts): formats 3 and 4, the same header, its count still
 * that of the positions; then runs of what is left, each behind how many positions it leaves out 4, and how many
 * records it has 4.
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
/** In front of each record of a listed batch. */
const listingBytes = uuidBytesLength + timeBytes + 1;

/** One record without its place in the log. */
export interface BatchRecord extends Omit<DecodedLogRecord, 'end'> {
  /** How many positions it is behind the first of its batch. */
  index: number;
  /** UUIDv7, 16 bytes. */
  id: Buffer;
  /** When it was stored, in the shard's life time. */
  timeMs: number;
  /** Whether it came from the log of another shard. */
  isRelocated: boolean;
}

/** One record with all that does not follow from its batch. */
export interface ListedRecord {
  id: Buffer;
  timeMs: number;
  isRelocated: boolean;
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
 * `newestMs` is the time of the batch in front of it: what comes behind newer records is not to look older than
 * they are, or trimming, which goes by the front of the log, would take them with it.
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

/** One position that nothing stands at any more. */
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

/** Too short to be one: what stands in its header is not to be read. */
export function isDamaged(batch: Buffer): boolean {
  return batch.length < batchHeaderBytes;
}

/** How many positions a batch takes. */
export function countOf(batch: Buffer): number {
  return batch.readUInt32BE(countAt);
}

/** How many records are in a batch; undefined when it is not exactly what is encoded here. @throws RangeError */
export function countBatch(batch: Buffer): number | undefined {
  const count = countOf(batch);
  if (!isFormat(batch.readUInt8(0)) || count === 0 || !isUuid(batch.subarray(1))) return undefined;
  const isListed = isListedBatch(batch);
  const isCut = isCutBatch(batch);
  let at = batchHeaderBytes;
  let index = 0;
  let records = 0;
  while (isCut ? at < batch.length : index < count) {
    let kept = count;
    if (isCut) {
      index += batch.readUInt32BE(at);
      kept = batch.readUInt32BE(at + 4);
      at += runHeaderBytes;
      if (kept === 0 || index + kept > count) return undefined;
    }
    for (const end = index + kept; index < end; index += 1) {
      if (isListed && !isUuid(batch.subarray(at))) return undefined;
      const { isSound, end: recordEnd } = checkLogRecord(batch, isListed ? at + listingBytes : at);
      if (!isSound || recordEnd > batch.length) return undefined;
      at = recordEnd;
      records += 1;
    }
  }
  return at === batch.length ? records : undefined;
}

/** When the newest record of a batch was stored. Those that were ingested together share one time. */
export function newestTimeMs(batch: Buffer): number {
  return uuidTimeMs(batch.subarray(1));
}

/** Where a record stands in its batch. */
export interface BatchPlace {
  /** How many positions it is behind the first. */
  index: number;
  /** Where its listing is; undefined where id and time follow from the batch. */
  listingAt: number | undefined;
  at: number;
  end: number;
}

/** Every record that is left of a batch. @throws RangeError where it is damaged. */
export function* placesIn(batch: Buffer): Generator<BatchPlace> {
  const format = batch.readUInt8(0);
  if (!isFormat(format)) throw new Error(`log batch of format ${format}`);
  const isListed = isListedBatch(batch);
  const isCut = isCutBatch(batch);
  const count = countOf(batch);
  let at = batchHeaderBytes;
  let index = 0;
  while (isCut ? at < batch.length : index < count) {
    let kept = count;
    if (isCut) {
      index += batch.readUInt32BE(at);
      kept = batch.readUInt32BE(at + 4);
      at += runHeaderBytes;
    }
    for (const runEnd = index + kept; index < runEnd; index += 1) {
      const listingAt = isListed ? at : undefined;
      if (isListed) at += listingBytes;
      const end = endOfLogRecord(batch, at);
      yield { index, listingAt, at, end };
      at = end;
    }
  }
}

function idOf(batch: Buffer, { index, listingAt }: BatchPlace): Buffer {
  if (listingAt === undefined) return idBehind(batch.subarray(1, countAt), index);
  return Buffer.from(batch.subarray(listingAt, listingAt + uuidBytesLength));
}

/** When the record was stored, in the shard's life time. */
export function timeMsOf(batch: Buffer, { listingAt }: BatchPlace): number {
  if (listingAt === undefined) return newestTimeMs(batch);
  return batch.readUIntBE(listingAt + uuidBytesLength, timeBytes);
}

function isRelocated(batch: Buffer, { listingAt }: BatchPlace): boolean {
  return listingAt !== undefined && batch.readUInt8(listingAt + uuidBytesLength + timeBytes) === 1;
}

/** The id of the record that is so many behind the first of a batch as it was ingested. */
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

/** Whether records were cut out of it. */
export function isCutBatch(batch: Buffer): boolean {
  return batch.readUInt8(0) >= cutIngestedFormat;
}

/** The format of a batch of which records are cut out. */
export function cutFormatOf(batch: Buffer): number {
  return isListedBatch(batch) ? cutListedFormat : cutIngestedFormat;
}

export function* decodeBatch(batch: Buffer): Generator<BatchRecord> {
  for (const place of placesIn(batch)) {
    const { end: _, ...record } = decodeLogRecord(batch, place.at);
    const listing = {
      id: idOf(batch, place),
      timeMs: timeMsOf(batch, place),
      isRelocated: isRelocated(batch, place),
    };
    yield { index: place.index, ...listing, ...record };
  }
}

/** The records of a batch as views of it, for a move. */
export function* splitBatch(batch: Buffer): Generator<{ device: DeviceKey; record: ListedRecord }> {
  for (const place of placesIn(batch)) {
    const { at, end } = place;
    const listing = { id: idOf(batch, place), timeMs: timeMsOf(batch, place), isRelocated: true };
    yield { device: deviceOfLogRecord(batch, at), record: { ...listing, bytes: batch.subarray(at, end) } };
  }
}
