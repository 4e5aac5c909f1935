import { uuidBytesLength } from '../core/uuid.ts';
import { readSequence, sequenceBytes } from './keys.ts';
import type { SettleVerb } from './shard.ts';

/** D15: the same verb again is answered 200 for the mails settled last, this many of them. */
export const settledMax = 32;

/**
 * A requeued mail is still there, so only what removed a mail is remembered. Mail that expired is not: it
 * would push out what the device itself settled, and a late answer to it is 404.
 */
export type SettledVerb = Exclude<SettleVerb, 'requeue'>;
const verbs: readonly SettledVerb[] = ['ack', 'reject'];

/**
 * The small record of a mailbox: so that size and head never need a scan. Live sequences lie from `head`
 * (exactly the first mail, unless size is 0) up to but not including `tail`.
 */
export interface MailboxRecord {
  size: number;
  head: number;
  tail: number;
  /** The mails settled last, newest first. */
  settled: { mailId: Buffer; verb: SettledVerb }[];
}

const settledBytes = uuidBytesLength + 1;
const headerBytes = 4 + 2 * sequenceBytes;

export function emptyMailbox(): MailboxRecord {
  return { size: 0, head: 1, tail: 1, settled: [] };
}

export function encodeMailbox(record: MailboxRecord): Buffer {
  const bytes = Buffer.allocUnsafe(headerBytes + record.settled.length * settledBytes);
  bytes.writeUInt32BE(record.size, 0);
  bytes.writeUIntBE(record.head, 4, sequenceBytes);
  bytes.writeUIntBE(record.tail, 4 + sequenceBytes, sequenceBytes);
  record.settled.forEach(({ mailId, verb }, index) => {
    const start = headerBytes + index * settledBytes;
    bytes.set(mailId, start);
    bytes.writeUInt8(verbs.indexOf(verb), start + uuidBytesLength);
  });
  return bytes;
}

export function readSize(bytes: Buffer): number {
  return bytes.readUInt32BE(0);
}

export function readHead(bytes: Buffer): number {
  return readSequence(bytes, 4);
}

export function decodeMailbox(bytes: Buffer): MailboxRecord {
  const settled: MailboxRecord['settled'] = [];
  for (let start = headerBytes; start < bytes.length; start += settledBytes) {
    const mailId = Buffer.from(bytes.subarray(start, start + uuidBytesLength));
    settled.push({ mailId, verb: verbs[bytes.readUInt8(start + uuidBytesLength)] ?? 'reject' });
  }
  return {
    size: readSize(bytes),
    head: readHead(bytes),
    tail: readSequence(bytes, 4 + sequenceBytes),
    settled,
  };
}
