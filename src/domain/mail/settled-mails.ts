import { uuidBytesLength } from '../../core/uuid.ts';
import type { MailEnd } from './ended-mail.ts';

/** How many settlements are remembered, to answer the same verb again with 200 (D15). */
export const settledMax = 32;

/**
 * Ends that are remembered: those by a verb. Expiry would displace what the device itself settled, and a late answer to
 * it is 404.
 */
const ends: readonly MailEnd[] = ['acked', 'rejected', 'over_requeued', 'withdrawn'];

/** The last settled mails of a mailbox, newest first: mail id 16 and end 1 each. */
export interface SettledMails {
  /** Only searched and shifted. */
  settled: Buffer;
}

const settledBytes = uuidBytesLength + 1;

/** How a mail ended, if remembered. */
export function rememberedEnd({ settled }: SettledMails, mailId: Uint8Array): MailEnd | undefined {
  for (let start = 0; start < settled.length; start += settledBytes) {
    const endAt = start + uuidBytesLength;
    if (settled.compare(mailId, 0, uuidBytesLength, start, endAt) === 0)
      return ends[settled.readUInt8(endAt)];
  }
  return undefined;
}

/** Prepends a mail, dropping the oldest if full; does nothing for an end that is not remembered. */
export function rememberEnd(mailbox: SettledMails, mailId: Uint8Array, end: MailEnd): void {
  const number = ends.indexOf(end);
  if (number < 0) return;
  const before = mailbox.settled.subarray(0, (settledMax - 1) * settledBytes);
  const settled = Buffer.allocUnsafe(settledBytes + before.length);
  settled.set(mailId);
  settled[uuidBytesLength] = number;
  settled.set(before, settledBytes);
  mailbox.settled = settled;
}

/** True if a list can have this length. */
export function isSettledLength(length: number): boolean {
  return length >= 0 && length % settledBytes === 0;
}

/** True if the bytes are a valid list. */
export function isSettledList(bytes: Buffer): boolean {
  if (!isSettledLength(bytes.length) || bytes.length > settledMax * settledBytes) return false;
  for (let endAt = uuidBytesLength; endAt < bytes.length; endAt += settledBytes) {
    if (ends[bytes.readUInt8(endAt)] === undefined) return false;
  }
  return true;
}
