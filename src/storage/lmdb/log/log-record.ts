import { type DeviceKey, deviceKeyLength, isDeviceKey, schemaNamePattern } from '../../../core/identity.ts';
import { uuidBytesLength } from '../../../core/uuid.ts';
import {
  logRecordBytes,
  type RecordKind,
  recordedAtBytes,
  recordHeaderBytes,
  recordKinds,
} from '../../../domain/records/record.ts';
import { readDevice } from '../layout/keys.ts';

/** In the byte of the kind: a device time follows the payload length (D25). */
const hasRecordedAt = 0x80;
/** Likewise, the id of the mail that a reply answers (D31). */
const hasMailId = 0x40;
const kindMask = 0x3f;

/** device 18, kind 1, schema length 1, schema, payload length 3, device time 6 and mail id 16 if there is one, payload. */
export interface NewLogRecord {
  device: DeviceKey;
  kind: RecordKind;
  schema: string;
  payload: Uint8Array;
  recordedAtMs?: number;
  mailId?: Uint8Array;
}

/**
 * Encodes a record for the log. It happens once, on the thread that received the request; from there on the bytes are
 * only copied, through the channel and into the batch.
 */
export function encodeLogRecord(record: NewLogRecord): Buffer {
  const bytes = Buffer.allocUnsafe(logRecordBytes(record));
  writeRecord(bytes, 0, record.device, record);
  return bytes;
}

/** Returns its end. */
function writeRecord(
  bytes: Buffer,
  start: number,
  device: DeviceKey,
  { kind, schema, payload, recordedAtMs, mailId }: Omit<NewLogRecord, 'device'>,
): number {
  let at = writeHeader(bytes, start, device, kind, schema, payload.length);
  if (recordedAtMs !== undefined) {
    bytes[start + deviceKeyLength] = bytes.readUInt8(start + deviceKeyLength) | hasRecordedAt;
    at = bytes.writeUIntBE(recordedAtMs, at, recordedAtBytes);
  }
  if (mailId !== undefined) {
    bytes[start + deviceKeyLength] = bytes.readUInt8(start + deviceKeyLength) | hasMailId;
    bytes.set(mailId, at);
    at += uuidBytesLength;
  }
  bytes.set(payload, at);
  return at + payload.length;
}

/** Records one behind the other, and where each ends; one that is absent ends where it would begin. */
export interface EncodedRecords {
  bytes: Uint8Array;
  ends: Uint32Array;
}

/** Encodes the records of a device in one piece, which may cross threads. */
export function encodeLogRecords(
  device: DeviceKey,
  records: readonly (Omit<NewLogRecord, 'device'> | undefined)[],
): EncodedRecords {
  const ends = new Uint32Array(records.length);
  let byteLength = 0;
  for (const [index, record] of records.entries()) {
    if (record !== undefined) byteLength += logRecordBytes(record);
    ends[index] = byteLength;
  }
  // Of its own memory: a structured clone copies the whole buffer under a view.
  const bytes = Buffer.allocUnsafeSlow(byteLength);
  let at = 0;
  for (const record of records) if (record !== undefined) at = writeRecord(bytes, at, device, record);
  return { bytes, ends };
}

/** Counts the encoded records from an index on. */
export function countBehind({ ends }: EncodedRecords, index: number): number {
  let count = 0;
  for (let at = index; at < ends.length; at += 1) if (ends[at] !== (ends[at - 1] ?? 0)) count += 1;
  return count;
}

/** The same for an ASCII payload, without a buffer of its own. */
export function encodeTextRecord(device: DeviceKey, kind: RecordKind, schema: string, text: string): Buffer {
  const bytes = Buffer.allocUnsafe(recordHeaderBytes + schema.length + text.length);
  const at = writeHeader(bytes, 0, device, kind, schema, text.length);
  bytes.write(text, at, 'latin1');
  return bytes;
}

/** Returns the offset of the payload. */
function writeHeader(
  bytes: Buffer,
  start: number,
  device: DeviceKey,
  kind: RecordKind,
  schema: string,
  payloadBytes: number,
): number {
  const kindAt = start + deviceKeyLength;
  bytes.write(device, start, 'latin1');
  bytes[kindAt] = recordKinds.indexOf(kind);
  bytes[kindAt + 1] = schema.length;
  bytes.write(schema, kindAt + 2, 'latin1');
  return bytes.writeUIntBE(payloadBytes, kindAt + 2 + schema.length, 3);
}

/** A record without its payload. */
interface LogRecordHead {
  device: DeviceKey;
  kind: RecordKind;
  schema: string;
}

export interface DecodedLogRecord extends LogRecordHead {
  payload: Buffer;
  recordedAtMs?: number;
  mailId?: Buffer;
}

export function deviceOfLogRecord(bytes: Buffer, at: number): DeviceKey {
  return readDevice(bytes, at);
}

function payloadLengthAtOf(bytes: Buffer, at: number): number {
  const schemaAt = at + deviceKeyLength + 2;
  return schemaAt + bytes.readUInt8(schemaAt - 1);
}

function recordedAtBytesOf(bytes: Buffer, at: number): number {
  return (bytes.readUInt8(at + deviceKeyLength) & hasRecordedAt) === 0 ? 0 : recordedAtBytes;
}

function mailIdBytesOf(bytes: Buffer, at: number): number {
  return (bytes.readUInt8(at + deviceKeyLength) & hasMailId) === 0 ? 0 : uuidBytesLength;
}

/** The end of the record at `at`. */
export function endOfLogRecord(bytes: Buffer, at: number): number {
  const payloadLengthAt = payloadLengthAtOf(bytes, at);
  const optionalBytes = recordedAtBytesOf(bytes, at) + mailIdBytesOf(bytes, at);
  return payloadLengthAt + 3 + optionalBytes + bytes.readUIntBE(payloadLengthAt, 3);
}

/** Decodes the head of the record at `at`. @throws RangeError for a damaged one */
export function headOfLogRecord(bytes: Buffer, at: number): LogRecordHead {
  const device = readDevice(bytes, at);
  const kind = recordKinds[bytes.readUInt8(at + deviceKeyLength) & kindMask];
  const schema = bytes.toString('latin1', at + deviceKeyLength + 2, payloadLengthAtOf(bytes, at));
  if (kind === undefined || !isDeviceKey(device) || !schemaNamePattern.test(schema)) {
    throw new RangeError('a record of the log is damaged');
  }
  return { device, kind, schema };
}

/** Decodes the record at `at`, which ends at `end`. @throws RangeError for a damaged one */
export function decodeLogRecord(bytes: Buffer, at: number, end: number): DecodedLogRecord {
  const recordedAtAt = payloadLengthAtOf(bytes, at) + 3;
  const mailIdAt = recordedAtAt + recordedAtBytesOf(bytes, at);
  const payloadAt = mailIdAt + mailIdBytesOf(bytes, at);
  const { device, kind, schema } = headOfLogRecord(bytes, at);
  return {
    device,
    kind,
    schema,
    payload: Buffer.from(bytes.subarray(payloadAt, end)),
    ...(mailIdAt > recordedAtAt && { recordedAtMs: bytes.readUIntBE(recordedAtAt, recordedAtBytes) }),
    ...(payloadAt > mailIdAt && { mailId: Buffer.from(bytes.subarray(mailIdAt, payloadAt)) }),
  };
}
