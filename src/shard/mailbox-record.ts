import { uuidBytesLength } from '../core/uuid.ts';
import { readSequence, sequenceBytes } from './keys.ts';
import type { SettleVerb } from './shard.ts';

/** D15: the same verb again is answered 200 for the mails settled last, this many of them. */
export const settledMax = 32;

/**
 * What removed a mail is remembered: a requeue only where it was one too many. Mail that expired is not: it
 * would push out what the device itself settled, and a late answer to it is 404.
 */
export type SettledVerb = SettleVerb | 'withdraw';
const verbs: readonly SettledVerb[] = ['ack', 'reject', 'requeue', 'withdraw'];

/**
 * The small record of a mailbox: so that size and head never need a scan. Live sequences lie from `head`
 * (exactly the first mail, unless size is 0) up to but not including `tail`.
 */
export interface MailboxRecord {
  size: number;
  head: number;
  tail: number;
  /** The mails settled last, newest first, mail id 16 and verb 1 each: only ever searched and moved on. */
  settled: Buffer;
}

const settledBytes = uuidBytesLength + 1;
const headerBytes = 4 + 2 * sequenceBytes;

export function emptyMailbox(): MailboxRecord {
  return { size: 0, head: 1, tail: 1, settled: Buffer.alloc(0) };
}

export function encodeMailbox(record: MailboxRecord): Buffer {
  const bytes = Buffer.allocUnsafe(headerBytes + record.settled.length);
  bytes.writeUInt32BE(record.size, 0);
  bytes.writeUIntBE(record.head, 4, sequenceBytes);
  bytes.writeUIntBE(record.tail, 4 + sequenceBytes, sequenceBytes);
  bytes.set(record.settled, headerBytes);
  return bytes;
}

/** The first that is read of a mailbox. @throws Error for a damaged record. */
export function readSize(bytes: Buffer): number {
  const isWhole = bytes.length >= headerBytes && (bytes.length - headerBytes) % settledBytes === 0;
  if (!isWhole) throw new Error('a mailbox record is damaged');
  return bytes.readUInt32BE(0);
}

export function readHead(bytes: Buffer): number {
  return readSequence(bytes, 4);
}

/** `settled` is a view of `bytes`. */
export function decodeMailbox(bytes: Buffer): MailboxRecord {
  return {
    size: readSize(bytes),
    head: readHead(bytes),
    tail: readSequence(bytes, 4 + sequenceBytes),
    settled: bytes.subarray(headerBytes),
  };
}

/** How a mail was settled, as far as it is remembered. */
export function settledVerb({ settled }: MailboxRecord, mailId: Uint8Array): SettledVerb | undefined {
  for (let start = 0; start < settled.length; start += settledBytes) {
    const verbAt = start + uuidBytesLength;
    if (settled.compare(mailId, 0, uuidBytesLength, start, verbAt) === 0)
      return verbs[settled.readUInt8(verbAt)];
  }
  return undefined;
}

/** Puts a mail in front of those settled before it; the oldest is forgotten for it. */
export function rememberSettled(record: MailboxRecord, mailId: Uint8Array, verb: SettledVerb): void {
  const before = record.settled.subarray(0, (settledMax - 1) * settledBytes);
  const settled = Buffer.allocUnsafe(settledBytes + before.length);
  settled.set(mailId);
  settled[uuidBytesLength] = verbs.indexOf(verb);
  settled.set(before, settledBytes);
  record.settled = settled;
}

/** Whether these bytes can be the record of a mailbox. */
export function isMailboxRecord(bytes: Buffer): boolean {
  const settled = bytes.length - headerBytes;
  if (settled < 0 || settled % settledBytes !== 0 || settled > settledMax * settledBytes) return false;
  for (let verbAt = headerBytes + uuidBytesLength; verbAt < bytes.length; verbAt += settledBytes) {
    if (verbs[bytes.readUInt8(verbAt)] === undefined) return false;
  }
  return true;
}
