import { copyUuid, uuidBytesLength } from '../../../core/uuid.ts';
import type { DeadLetter, DeathReason } from '../../../domain/mail/ended-mail.ts';
import type { Mail } from '../../../domain/mail/mail.ts';
import {
  decodeMail,
  isMailRecord,
  readAcceptedAtMs,
  readFetchCount,
  readName,
  readPayloadBytes,
  readRequeueCount,
} from './mail-record.ts';

/** Reason 1, time of death 6 in shard life time, the mail as it was (mail-record.ts). */
const diedAt = 1;
const mailAt = diedAt + 6;

/** In the order of their stored numbers; 0 is unused. */
const reasons: readonly (DeathReason | undefined)[] = [
  undefined,
  'rejected',
  'expired',
  'over_requeued',
  'mailbox_full',
];

export function encodeDeadLetter(mail: Buffer, reason: DeathReason, diedAtMs: number): Buffer {
  const bytes = Buffer.allocUnsafe(mailAt + mail.length);
  bytes.writeUInt8(reasons.indexOf(reason), 0);
  bytes.writeUIntBE(diedAtMs, diedAt, 6);
  bytes.set(mail, mailAt);
  return bytes;
}

/** The time of death; 0, the oldest, for a damaged record. */
export function readDiedAtMs(bytes: Buffer): number {
  return bytes.length < mailAt ? 0 : bytes.readUIntBE(diedAt, 6);
}

/** Decodes all but the payload, with times in shard life time. @throws Error for a damaged record. */
export function decodeDeadLetter(bytes: Buffer): Omit<DeadLetter, 'device'> {
  if (!isDeadLetterRecord(bytes)) throw new Error('a dead letter is damaged');
  const mail = bytes.subarray(mailAt, bytes.length);
  return {
    mailId: copyUuid(mail),
    name: readName(mail),
    reason: reasons[bytes.readUInt8(0)] as DeathReason,
    diedAtMs: readDiedAtMs(bytes),
    queuedAtMs: readAcceptedAtMs(mail) || undefined,
    fetchCount: readFetchCount(mail),
    requeueCount: readRequeueCount(mail),
    payloadBytes: readPayloadBytes(mail),
  };
}

/** Copies the mail of a letter. @throws Error for a damaged record. */
export function mailOf(bytes: Buffer): Mail {
  if (!isDeadLetterRecord(bytes)) throw new Error('a dead letter is damaged');
  return decodeMail(bytes.subarray(mailAt, bytes.length));
}

/** True if the bytes can be a dead letter. */
export function isDeadLetterRecord(bytes: Buffer): boolean {
  if (bytes.length < mailAt + uuidBytesLength || reasons[bytes.readUInt8(0)] === undefined) return false;
  return isMailRecord(bytes.subarray(mailAt, bytes.length));
}
