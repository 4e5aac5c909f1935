import { schemaNamePattern } from '../../../core/identity.ts';
import type { MailEnd, Receipt } from '../../../domain/mail/ended-mail.ts';
import { firstFetchMs } from '../../../domain/mail/fetch-rules.ts';
import type { Fetches } from '../../../domain/mail/mail.ts';
import {
  readAcceptedAtMs,
  readFetchCount,
  readFirstFetchedAtMs,
  readName,
  readRequeueCount,
} from './mail-record.ts';

/**
 * End 1, requeues 2, fetches 4, queued 6 (0: never), first fetched 6 (0: never), settled 6, name. Queued and settled
 * are in shard life time, as in a mail.
 */
const requeuesAt = 1;
const fetchesAt = requeuesAt + 2;
const queuedAt = fetchesAt + 4;
const firstFetchedAt = queuedAt + 6;
const settledAt = firstFetchedAt + 6;
const nameAt = settledAt + 6;

/** In the order of their stored numbers; 0 is unused. */
const ends: readonly (MailEnd | undefined)[] = [
  undefined,
  'acked',
  'rejected',
  'expired',
  'withdrawn',
  'over_requeued',
  'mailbox_full',
];

export function encodeReceipt(mail: Buffer, end: MailEnd, settledAtMs: number): Buffer {
  const name = readName(mail);
  const bytes = Buffer.allocUnsafe(nameAt + name.length);
  bytes.writeUInt8(ends.indexOf(end), 0);
  bytes.writeUInt16BE(readRequeueCount(mail), requeuesAt);
  bytes.writeUInt32BE(readFetchCount(mail), fetchesAt);
  bytes.writeUIntBE(readAcceptedAtMs(mail), queuedAt, 6);
  bytes.writeUIntBE(readFirstFetchedAtMs(mail), firstFetchedAt, 6);
  bytes.writeUIntBE(settledAtMs, settledAt, 6);
  bytes.write(name, nameAt, 'latin1');
  return bytes;
}

/** Copies a receipt with more fetches, which may be reported after the end. */
export function withFetches(bytes: Buffer, fetches: Fetches): Buffer {
  const copy = Buffer.from(bytes.subarray(0, bytes.length));
  copy.writeUInt32BE(Math.min(copy.readUInt32BE(fetchesAt) + fetches.count, 0xffffffff), fetchesAt);
  const beforeMs = copy.readUIntBE(firstFetchedAt, 6) || undefined;
  copy.writeUIntBE(firstFetchMs(beforeMs, fetches), firstFetchedAt, 6);
  return copy;
}

export function readEnd(bytes: Buffer): MailEnd {
  const end = bytes.length < nameAt ? undefined : ends[bytes.readUInt8(0)];
  if (end === undefined) throw new Error('a receipt is damaged');
  return end;
}

/** The time of settlement; 0, the oldest, for a damaged record. */
export function readSettledAtMs(bytes: Buffer): number {
  return bytes.length < nameAt ? 0 : bytes.readUIntBE(settledAt, 6);
}

/** Decodes a receipt, with all times but the first fetch in shard life time. @throws Error for a damaged record. */
export function decodeReceipt(bytes: Buffer): Omit<Receipt, 'device' | 'mailId'> {
  return {
    state: readEnd(bytes),
    name: bytes.toString('latin1', nameAt, bytes.length),
    deliverAtMs: undefined,
    queuedAtMs: bytes.readUIntBE(queuedAt, 6) || undefined,
    expiresAtMs: undefined,
    fetchCount: bytes.readUInt32BE(fetchesAt),
    firstFetchedAtMs: bytes.readUIntBE(firstFetchedAt, 6) || undefined,
    requeueCount: bytes.readUInt16BE(requeuesAt),
    settledAtMs: bytes.readUIntBE(settledAt, 6),
  };
}

/** True if the bytes can be a receipt. */
export function isReceiptRecord(bytes: Buffer): boolean {
  if (bytes.length <= nameAt || ends[bytes.readUInt8(0)] === undefined) return false;
  return schemaNamePattern.test(bytes.toString('latin1', nameAt));
}
