import { isMailRecord } from './mail-record.ts';

/**
 * A mail that waits for its time: deliver 6 in the shard's life time, life in seconds 4, mails of its mailbox at most
 * 4, the mail (mail-record.ts), which is not accepted yet.
 */
const lifeAt = 6;
const mailsMaxAt = lifeAt + 4;
const mailAt = mailsMaxAt + 4;

export interface DelayedRecord {
  deliverAtMs: number;
  ttlSeconds: number;
  mailboxMailsMax: number;
  /** As a mail record. */
  mail: Buffer;
}

export function encodeDelayed({ deliverAtMs, ttlSeconds, mailboxMailsMax, mail }: DelayedRecord): Buffer {
  const bytes = Buffer.allocUnsafe(mailAt + mail.length);
  bytes.writeUIntBE(deliverAtMs, 0, 6);
  bytes.writeUInt32BE(ttlSeconds, lifeAt);
  bytes.writeUInt32BE(Math.min(mailboxMailsMax, 0xffffffff), mailsMaxAt);
  bytes.set(mail, mailAt);
  return bytes;
}

/** The mail is a copy. @throws Error for a damaged record. */
export function decodeDelayed(bytes: Buffer): DelayedRecord {
  if (!isDelayedRecord(bytes)) throw new Error('a delayed mail is damaged');
  return {
    deliverAtMs: bytes.readUIntBE(0, 6),
    ttlSeconds: bytes.readUInt32BE(lifeAt),
    mailboxMailsMax: bytes.readUInt32BE(mailsMaxAt),
    mail: Buffer.from(bytes.subarray(mailAt, bytes.length)),
  };
}

/** Whether these bytes can be a delayed mail. */
export function isDelayedRecord(bytes: Buffer): boolean {
  return bytes.length > mailAt && isMailRecord(bytes.subarray(mailAt, bytes.length));
}
