import { schemaNamePattern } from '../core/identity.ts';
import { isUuid, uuidBytesLength } from '../core/uuid.ts';
import type { Mail } from './shard.ts';

/**
 * id 16, requeues 2, fetches 4, accepted 6, expires 6, first fetched 6 (0: never), name length 1, name,
 * payload. Times are Unix milliseconds.
 */
const requeuesAt = uuidBytesLength;
const fetchesAt = requeuesAt + 2;
const acceptedAt = fetchesAt + 4;
const expiresAt = acceptedAt + 6;
const firstFetchedAt = expiresAt + 6;
const nameAt = firstFetchedAt + 6;

export function encodeMail(mail: Mail): Buffer {
  const bytes = Buffer.allocUnsafe(nameAt + 1 + mail.name.length + mail.payload.length);
  bytes.set(mail.id, 0);
  bytes.writeUInt16BE(Math.min(mail.requeueCount, 0xffff), requeuesAt);
  bytes.writeUInt32BE(Math.min(mail.fetchCount, 0xffffffff), fetchesAt);
  bytes.writeUIntBE(mail.acceptedAtMs, acceptedAt, 6);
  bytes.writeUIntBE(mail.expiresAtMs, expiresAt, 6);
  bytes.writeUIntBE(mail.firstFetchedAtMs ?? 0, firstFetchedAt, 6);
  bytes.writeUInt8(mail.name.length, nameAt);
  bytes.write(mail.name, nameAt + 1, 'latin1');
  bytes.set(mail.payload, nameAt + 1 + mail.name.length);
  return bytes;
}

/** @throws Error for a damaged record. */
export function checkMail(bytes: Buffer): void {
  if (bytes.length <= nameAt || bytes.length < nameAt + 1 + bytes.readUInt8(nameAt)) {
    throw new Error('a mail record is damaged');
  }
}

/** The mail outlives `bytes`: it is a view of one copy. @throws Error for a damaged record. */
export function decodeMail(bytes: Buffer): Mail {
  checkMail(bytes);
  const copy = copyOf(bytes);
  const payloadAt = nameAt + 1 + bytes.readUInt8(nameAt);
  return {
    id: copy.subarray(0, uuidBytesLength),
    name: bytes.toString('latin1', nameAt + 1, payloadAt),
    payload: copy.subarray(payloadAt),
    requeueCount: bytes.readUInt16BE(requeuesAt),
    fetchCount: bytes.readUInt32BE(fetchesAt),
    acceptedAtMs: bytes.readUIntBE(acceptedAt, 6),
    expiresAtMs: bytes.readUIntBE(expiresAt, 6),
    firstFetchedAtMs: bytes.readUIntBE(firstFetchedAt, 6) || undefined,
  };
}

/** What a write needs of a mail, read off its bytes: they need not be copied for it. */
export function readRequeueCount(bytes: Buffer): number {
  return bytes.readUInt16BE(requeuesAt);
}

export function readExpiresAtMs(bytes: Buffer): number {
  return bytes.readUIntBE(expiresAt, 6);
}

/** The store's views are longer than their `length` says. */
function copyOf(bytes: Buffer): Buffer {
  return Buffer.from(bytes.subarray(0, bytes.length));
}

/** A copy that was requeued once more (D14). */
export function requeued(bytes: Buffer): Buffer {
  const copy = copyOf(bytes);
  copy.writeUInt16BE(Math.min(readRequeueCount(bytes) + 1, 0xffff), requeuesAt);
  return copy;
}

/** A copy that was fetched `count` times more, for the first time at `firstMs` if never before (D13). */
export function fetched(bytes: Buffer, count: number, firstMs: number): Buffer {
  const copy = copyOf(bytes);
  copy.writeUInt32BE(Math.min(bytes.readUInt32BE(fetchesAt) + count, 0xffffffff), fetchesAt);
  if (bytes.readUIntBE(firstFetchedAt, 6) === 0) copy.writeUIntBE(firstMs, firstFetchedAt, 6);
  return copy;
}

/** Whether these bytes can be a mail. */
export function isMailRecord(bytes: Buffer): boolean {
  if (bytes.length <= nameAt || bytes.length < nameAt + 1 + bytes.readUInt8(nameAt)) return false;
  return isUuid(bytes) && schemaNamePattern.test(decodeMail(bytes).name);
}
