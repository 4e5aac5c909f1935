import { firstFetchMs } from '../../../domain/mail/fetch-rules.ts';
import type { Enqueue, Fetches, Mail } from '../../../domain/mail/mail.ts';
import { mailFields, sentFields } from '../../../domain/mail/mail-fields.ts';
import { requeuedCount } from '../../../domain/mail/settle-rules.ts';
import { RecordLayout } from './record-layout.ts';

/** Times in Unix milliseconds; accepted 0: not yet. */
export const mailLayout = new RecordLayout<typeof mailFields>('mail record', mailFields);

export const { encode: encodeMail, decode: decodeMail, check: checkMail } = mailLayout;

/** Encodes a mail as it was sent, with the rest of its fields. */
export const encodeSent =
  mailLayout.encoder<(sent: Enqueue, rest: Omit<Mail, keyof typeof sentFields>) => Buffer>(sentFields);

/** These read single fields from the bytes, without a copy. */
export const {
  name: readName,
  requeueCount: readRequeueCount,
  requeuesMax: readRequeuesMax,
  fetchCount: readFetchCount,
  acceptedAtMs: readAcceptedAtMs,
  firstFetchedAtMs: readFirstFetchedAtMs,
  expiresAtMs: readExpiresAtMs,
} = mailLayout.read;
const { write } = mailLayout;

/** Decodes all but the payload. @throws Error for a damaged record. */
export const decodeHeader = mailLayout.decodeFront;

export function readPayloadBytes(bytes: Buffer): number {
  return bytes.length - mailLayout.restAt(bytes);
}

/** Copies a record without the bytes that the store's views have beyond their `length`. */
export function copyOf(bytes: Buffer): Buffer {
  return Buffer.from(bytes.subarray(0, bytes.length));
}

/** Copies all but the payload. */
export function copyHeader(bytes: Buffer): Buffer {
  return Buffer.from(bytes.subarray(0, mailLayout.restAt(bytes)));
}

/** Counts one more requeue (D14). */
export function addRequeue(copy: Buffer): void {
  write.requeueCount(copy, requeuedCount(readRequeueCount(copy)));
}

/** Adds fetches (D13). */
export function addFetches(copy: Buffer, fetches: Fetches): void {
  write.fetchCount(copy, readFetchCount(copy) + fetches.count);
  write.firstFetchedAtMs(copy, firstFetchMs(readFirstFetchedAtMs(copy), fetches));
}

/** Sets the time of acceptance, which a delayed mail gets only when due. */
export function setAccepted(copy: Buffer, acceptedAtMs: number, expiresAtMs: number): void {
  write.acceptedAtMs(copy, acceptedAtMs);
  write.expiresAtMs(copy, expiresAtMs);
}

/** True if the bytes can be a mail. */
export function isMailRecord(bytes: Buffer): boolean {
  return mailLayout.isRecord(bytes);
}
