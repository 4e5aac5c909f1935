import { field, picked } from '../../../domain/fields.ts';
import type { DeadLetterWithPayload, DeathReason } from '../../../domain/mail/ended-mail.ts';
import type { Mail } from '../../../domain/mail/mail.ts';
import { letterFields, livingFields } from '../../../domain/mail/mail-fields.ts';
import { decodeHeader, decodeMail, isMailRecord, readPayloadBytes } from './mail-record.ts';
import { RecordLayout } from './record-layout.ts';

/** Why and when it died, in shard life time, and the mail as it was (mail-record.ts). */
const { reason, diedAtMs } = letterFields;
const fields = { reason, diedAtMs, mail: field.bytes };
const layout = new RecordLayout<typeof fields>('dead letter', fields);
const { read } = layout;

export function encodeDeadLetter(mail: Buffer, reason: DeathReason, diedAtMs: number): Buffer {
  return layout.encode({ reason, diedAtMs, mail });
}

/** The time of death; 0, the oldest, for a damaged record. */
export function readDiedAtMs(bytes: Buffer): number {
  return bytes.length < layout.fixedBytes ? 0 : read.diedAtMs(bytes);
}

/** Decodes all but the payload, with times in shard life time. @throws Error for a damaged record. */
export function decodeDeadLetter(bytes: Buffer): Omit<DeadLetterWithPayload, 'device' | 'payload'> {
  const mail = mailIn(bytes);
  const header = decodeHeader(mail);
  return {
    mailId: header.id,
    reason: read.reason(bytes),
    diedAtMs: read.diedAtMs(bytes),
    queuedAtMs: header.acceptedAtMs || undefined,
    payloadBytes: readPayloadBytes(mail),
    ...picked(livingFields, header),
  };
}

/** Copies the mail of a letter. @throws Error for a damaged record. */
export function mailOf(bytes: Buffer): Mail {
  return decodeMail(mailIn(bytes));
}

function mailIn(bytes: Buffer): Buffer {
  if (!isDeadLetterRecord(bytes)) throw new Error('a dead letter is damaged');
  return bytes.subarray(layout.fixedBytes, bytes.length);
}

/** True if the bytes can be a dead letter. */
export function isDeadLetterRecord(bytes: Buffer): boolean {
  return layout.isRecord(bytes) && isMailRecord(bytes.subarray(layout.fixedBytes, bytes.length));
}
