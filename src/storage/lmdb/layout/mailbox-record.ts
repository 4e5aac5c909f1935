import { isSettledLength, isSettledList, type SettledMails } from '../../../domain/mail/settled-mails.ts';
import { readSequence, sequenceBytes } from './keys.ts';

/**
 * A mailbox's summary, so that size, head and how long the head waits need no scan. Live sequences range from `head`
 * (the first mail, unless size is 0) to `tail`, exclusive.
 */
export interface MailboxRecord extends SettledMails {
  size: number;
  head: number;
  tail: number;
  /** When the mail at the head came there, in shard life time; 0 without mail. */
  waitingSinceMs: number;
}

const waitingAt = 4 + 2 * sequenceBytes;
const headerBytes = waitingAt + 6;

export function emptyMailbox(): MailboxRecord {
  return { size: 0, head: 1, tail: 1, waitingSinceMs: 0, settled: Buffer.alloc(0) };
}

export function encodeMailbox(record: MailboxRecord): Buffer {
  const bytes = Buffer.allocUnsafe(headerBytes + record.settled.length);
  bytes.writeUInt32BE(record.size, 0);
  bytes.writeUIntBE(record.head, 4, sequenceBytes);
  bytes.writeUIntBE(record.tail, 4 + sequenceBytes, sequenceBytes);
  bytes.writeUIntBE(record.waitingSinceMs, waitingAt, 6);
  bytes.set(record.settled, headerBytes);
  return bytes;
}

/** Reads the size, checking the record first. @throws Error for a damaged record. */
export function readSize(bytes: Buffer): number {
  if (!isSettledLength(bytes.length - headerBytes)) throw new Error('a mailbox record is damaged');
  return bytes.readUInt32BE(0);
}

export function readHead(bytes: Buffer): number {
  return readSequence(bytes, 4);
}

export function readWaitingSinceMs(bytes: Buffer): number {
  return bytes.readUIntBE(waitingAt, 6);
}

/** Decodes a record; `settled` is a view of `bytes`. */
export function decodeMailbox(bytes: Buffer): MailboxRecord {
  return {
    size: readSize(bytes),
    head: readHead(bytes),
    tail: readSequence(bytes, 4 + sequenceBytes),
    waitingSinceMs: readWaitingSinceMs(bytes),
    settled: bytes.subarray(headerBytes),
  };
}

/** True if the bytes can be the record of a mailbox. */
export function isMailboxRecord(bytes: Buffer): boolean {
  return bytes.length >= headerBytes && isSettledList(bytes.subarray(headerBytes, bytes.length));
}
