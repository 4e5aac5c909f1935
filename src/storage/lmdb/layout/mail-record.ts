import { schemaNamePattern } from '../../../core/identity.ts';
import { isUuid, uuidBytesLength } from '../../../core/uuid.ts';
import type { Fetches, Mail } from '../../../domain/mail/mail.ts';

/**
 * id 16, requeues 2, requeues allowed 1 (0: any number, else one more than they are), fetches 3, accepted 6 (0: not
 * yet), expires 6, first fetched 6 (0: never), name length 1, name, payload. Times are Unix milliseconds.
 */
const requeuesAt = uuidBytesLength;
const requeuesMaxAt = requeuesAt + 2;
const fetchesAt = requeuesMaxAt + 1;
const acceptedAt = fetchesAt + 3;
const expiresAt = acceptedAt + 6;
const firstFetchedAt = expiresAt + 6;
const nameAt = firstFetchedAt + 6;
const fetchesMax = 0xffffff;

export function encodeMail(mail: Mail): Buffer {
  const bytes = Buffer.allocUnsafe(nameAt + 1 + mail.name.length + mail.payload.length);
  bytes.set(mail.id, 0);
  bytes.writeUInt16BE(Math.min(mail.requeueCount, 0xffff), requeuesAt);
  bytes.writeUInt8(mail.requeuesMax === undefined ? 0 : mail.requeuesMax + 1, requeuesMaxAt);
  bytes.writeUIntBE(Math.min(mail.fetchCount, fetchesMax), fetchesAt, 3);
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
    requeuesMax: readRequeuesMax(bytes),
    fetchCount: readFetchCount(bytes),
    acceptedAtMs: readAcceptedAtMs(bytes),
    expiresAtMs: readExpiresAtMs(bytes),
    firstFetchedAtMs: readFirstFetchedAtMs(bytes) || undefined,
  };
}

/** What a write needs of a mail, read off its bytes: they need not be copied for it. */
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

/** The store's views are longer than their `length` says. */
export function copyOf(bytes: Buffer): Buffer {
  return Buffer.from(bytes.subarray(0, bytes.length));
}

/** A copy of all but the payload. */
export function copyHeader(bytes: Buffer): Buffer {
  return Buffer.from(bytes.subarray(0, nameAt + 1 + bytes.readUInt8(nameAt)));
}

/** Requeued once more (D14). */
export function addRequeue(copy: Buffer): void {
  copy.writeUInt16BE(Math.min(readRequeueCount(copy) + 1, 0xffff), requeuesAt);
}

/** Fetched `count` times more, for the first time at `firstMs` if never before that (D13): who tells later may have seen it earlier. */
export function addFetches(copy: Buffer, { count, firstMs }: Fetches): void {
  copy.writeUIntBE(Math.min(readFetchCount(copy) + count, fetchesMax), fetchesAt, 3);
  const before = readFirstFetchedAtMs(copy);
  if (before === 0 || before > firstMs) copy.writeUIntBE(firstMs, firstFetchedAt, 6);
}

/** Accepted by its mailbox, which a delayed mail is only when its time comes. */
export function setAccepted(copy: Buffer, acceptedAtMs: number, expiresAtMs: number): void {
  copy.writeUIntBE(acceptedAtMs, acceptedAt, 6);
  copy.writeUIntBE(expiresAtMs, expiresAt, 6);
}

/** Whether these bytes can be a mail. */
export function isMailRecord(bytes: Buffer): boolean {
  if (bytes.length <= nameAt || bytes.length < nameAt + 1 + bytes.readUInt8(nameAt)) return false;
  return isUuid(bytes) && schemaNamePattern.test(readName(bytes));
}
