import { schemaNamePattern } from '../../../core/identity.ts';
import { isUuid, uuidBytesLength } from '../../../core/uuid.ts';
import { firstFetchMs, mailFetchesMax } from '../../../domain/mail/fetch-rules.ts';
import type { Fetches, Mail } from '../../../domain/mail/mail.ts';
import { requeuedCount } from '../../../domain/mail/settle-rules.ts';

/**
 * id 16, requeues 2, requeue limit 1 (0: none, else the limit plus one), fetches 3, accepted 6 (0: not yet), expires
 * 6, first fetched 6 (0: never), name length 1, name, payload. Times in Unix milliseconds.
 */
const requeuesAt = uuidBytesLength;
const requeuesMaxAt = requeuesAt + 2;
const fetchesAt = requeuesMaxAt + 1;
const acceptedAt = fetchesAt + 3;
const expiresAt = acceptedAt + 6;
const firstFetchedAt = expiresAt + 6;
const nameAt = firstFetchedAt + 6;

export function encodeMail(mail: Mail): Buffer {
  const bytes = Buffer.allocUnsafe(nameAt + 1 + mail.name.length + mail.payload.length);
  bytes.set(mail.id, 0);
  bytes.writeUInt16BE(Math.min(mail.requeueCount, 0xffff), requeuesAt);
  bytes.writeUInt8(mail.requeuesMax === undefined ? 0 : mail.requeuesMax + 1, requeuesMaxAt);
  bytes.writeUIntBE(Math.min(mail.fetchCount, mailFetchesMax), fetchesAt, 3);
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

/** Decodes a mail as views of one copy. @throws Error for a damaged record. */
export function decodeMail(bytes: Buffer): Mail {
  checkMail(bytes);
  const copy = copyOf(bytes);
  const payloadAt = nameAt + 1 + bytes.readUInt8(nameAt);
  return {
    id: copy.subarray(0, uuidBytesLength),
    name: bytes.toString('latin1', nameAt + 1, payloadAt),
    payload: copy.subarray(payloadAt),
    requeueCount: bytes.readUInt16BE(requeuesAt),
    requeuesMax: readRequeuesMax(bytes),
    fetchCount: readFetchCount(bytes),
    acceptedAtMs: readAcceptedAtMs(bytes),
    expiresAtMs: readExpiresAtMs(bytes),
    firstFetchedAtMs: readFirstFetchedAtMs(bytes) || undefined,
  };
}

/** These read single fields from the bytes, without a copy. */
export function readRequeueCount(bytes: Buffer): number {
  return bytes.readUInt16BE(requeuesAt);
}

export function readRequeuesMax(bytes: Buffer): number | undefined {
  const stored = bytes.readUInt8(requeuesMaxAt);
  return stored === 0 ? undefined : stored - 1;
}

export function readFetchCount(bytes: Buffer): number {
  return bytes.readUIntBE(fetchesAt, 3);
}

export function readAcceptedAtMs(bytes: Buffer): number {
  return bytes.readUIntBE(acceptedAt, 6);
}

/** 0: never. */
export function readFirstFetchedAtMs(bytes: Buffer): number {
  return bytes.readUIntBE(firstFetchedAt, 6);
}

export function readName(bytes: Buffer): string {
  return bytes.toString('latin1', nameAt + 1, nameAt + 1 + bytes.readUInt8(nameAt));
}

export function readPayloadBytes(bytes: Buffer): number {
  return bytes.length - nameAt - 1 - bytes.readUInt8(nameAt);
}

export function readExpiresAtMs(bytes: Buffer): number {
  return bytes.readUIntBE(expiresAt, 6);
}

/** Copies a record without the bytes that the store's views have beyond their `length`. */
export function copyOf(bytes: Buffer): Buffer {
  return Buffer.from(bytes.subarray(0, bytes.length));
}

/** Copies all but the payload. */
export function copyHeader(bytes: Buffer): Buffer {
  return Buffer.from(bytes.subarray(0, nameAt + 1 + bytes.readUInt8(nameAt)));
}

/** Counts one more requeue (D14). */
export function addRequeue(copy: Buffer): void {
  copy.writeUInt16BE(requeuedCount(readRequeueCount(copy)), requeuesAt);
}

/** Adds fetches (D13). */
export function addFetches(copy: Buffer, fetches: Fetches): void {
  copy.writeUIntBE(Math.min(readFetchCount(copy) + fetches.count, mailFetchesMax), fetchesAt, 3);
  copy.writeUIntBE(firstFetchMs(readFirstFetchedAtMs(copy) || undefined, fetches), firstFetchedAt, 6);
}

/** Sets the time of acceptance, which a delayed mail gets only when due. */
export function setAccepted(copy: Buffer, acceptedAtMs: number, expiresAtMs: number): void {
  copy.writeUIntBE(acceptedAtMs, acceptedAt, 6);
  copy.writeUIntBE(expiresAtMs, expiresAt, 6);
}

/** True if the bytes can be a mail. */
export function isMailRecord(bytes: Buffer): boolean {
  if (bytes.length <= nameAt || bytes.length < nameAt + 1 + bytes.readUInt8(nameAt)) return false;
  return isUuid(bytes) && schemaNamePattern.test(readName(bytes));
}
