import { uuidBytesLength } from '../../core/uuid.ts';
import type { MailEnd } from './ended-mail.ts';
import type { SettleVerb } from './mail.ts';

/** D15: the same verb again is answered 200 for the mails settled last, this many of them. */
export const settledMax = 32;

/**
 * What removed a mail is remembered: a requeue only where it was one too many. Mail that expired is not: it
 * would push out what the device itself settled, and a late answer to it is 404.
 */
export type SettledVerb = SettleVerb | 'withdraw';
const verbs: readonly SettledVerb[] = ['ack', 'reject', 'requeue', 'withdraw'];

/** How a mail ends that is removed by a verb. */
export const endOfVerb: Readonly<Record<SettledVerb, MailEnd>> = {
  ack: 'acked',
  reject: 'rejected',
  requeue: 'over_requeued',
  withdraw: 'withdrawn',
};

/** The mails of a mailbox that were settled last, newest first, mail id 16 and verb 1 each. */
export interface SettledMails {
  /** Only ever searched and moved on. */
  settled: Buffer;
}

const settledBytes = uuidBytesLength + 1;

/** How a mail was settled, as far as it is remembered. */
export function settledVerb({ settled }: SettledMails, mailId: Uint8Array): SettledVerb | undefined {
  for (let start = 0; start < settled.length; start += settledBytes) {
    const verbAt = start + uuidBytesLength;
    if (settled.compare(mailId, 0, uuidBytesLength, start, verbAt) === 0)
      return verbs[settled.readUInt8(verbAt)];
  }
  return undefined;
}

/** Puts a mail in front of those settled before it; the oldest is forgotten for it. */
export function rememberSettled(mailbox: SettledMails, mailId: Uint8Array, verb: SettledVerb): void {
  const before = mailbox.settled.subarray(0, (settledMax - 1) * settledBytes);
  const settled = Buffer.allocUnsafe(settledBytes + before.length);
  settled.set(mailId);
  settled[uuidBytesLength] = verbs.indexOf(verb);
  settled.set(before, settledBytes);
  mailbox.settled = settled;
}

/** Whether so many bytes can be such a list. */
export function isSettledLength(length: number): boolean {
  return length >= 0 && length % settledBytes === 0;
}

/** Whether these bytes can be such a list. */
export function isSettledList(bytes: Buffer): boolean {
  if (!isSettledLength(bytes.length) || bytes.length > settledMax * settledBytes) return false;
  for (let verbAt = uuidBytesLength; verbAt < bytes.length; verbAt += settledBytes) {
    if (verbs[bytes.readUInt8(verbAt)] === undefined) return false;
  }
  return true;
}
