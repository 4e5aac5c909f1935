import { isMailRecord } from './mail-record.ts';

/**
 * A delayed mail: delivery time 6 in shard life time, TTL in seconds 4, mailbox limit 4, and the mail
 * (mail-record.ts), not accepted yet.
 */
const ttlAt = 6;
const mailsMaxAt = ttlAt + 4;
const mailAt = mailsMaxAt + 4;

export interface DelayedRecord {
  deliverAtMs: number;
  ttlSeconds: number;
  mailboxMailsMax: number;
  /** A mail record. */
  mail: Buffer;
}

export function encodeDelayed({ deliverAtMs, ttlSeconds, mailboxMailsMax, mail }: DelayedRecord): Buffer {
  const bytes = Buffer.allocUnsafe(mailAt + mail.length);
  bytes.writeUIntBE(deliverAtMs, 0, 6);
  bytes.writeUInt32BE(ttlSeconds, ttlAt);
  bytes.writeUInt32BE(Math.min(mailboxMailsMax, 0xffffffff), mailsMaxAt);
  bytes.set(mail, mailAt);
  return bytes;
}

/** Decodes a record, copying the mail. @throws Error for a damaged record. */
export function decodeDelayed(bytes: Buffer): DelayedRecord {
  if (!isDelayedRecord(bytes)) throw new Error('a delayed mail is damaged');
  return {
    deliverAtMs: bytes.readUIntBE(0, 6),
    ttlSeconds: bytes.readUInt32BE(ttlAt),
    mailboxMailsMax: bytes.readUInt32BE(mailsMaxAt),
    mail: Buffer.from(bytes.subarray(mailAt, bytes.length)),
  };
}

/** True if the bytes can be a delayed mail. */
export function isDelayedRecord(bytes: Buffer): boolean {
  return bytes.length > mailAt && isMailRecord(bytes.subarray(mailAt, bytes.length));
}
