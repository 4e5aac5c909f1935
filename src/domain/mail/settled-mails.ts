import { uuidBytesLength } from '../../core/uuid.ts';
import type { MailEnd } from './ended-mail.ts';
import type { SettleVerb } from './mail.ts';

/** How many settlements are remembered, to answer the same verb again with 200 (D15). */
export const settledMax = 32;

/**
 * Verbs that removed a mail; a requeue only if it was one too many. Expiry is not remembered: it would displace what
 * the device itself settled, and a late answer to it is 404.
 */
export type SettledVerb = SettleVerb | 'withdraw';
const verbs: readonly SettledVerb[] = ['ack', 'reject', 'requeue', 'withdraw'];

/** The end of a mail removed by a verb. */
export const endOfVerb: Readonly<Record<SettledVerb, MailEnd>> = {
  ack: 'acked',
  reject: 'rejected',
  requeue: 'over_requeued',
  withdraw: 'withdrawn',
};

/** The last settled mails of a mailbox, newest first: mail id 16 and verb 1 each. */
export interface SettledMails {
  /** Only searched and shifted. */
  settled: Buffer;
}

const settledBytes = uuidBytesLength + 1;

/** How a mail was settled, if remembered. */
export function settledVerb({ settled }: SettledMails, mailId: Uint8Array): SettledVerb | undefined {
  for (let start = 0; start < settled.length; start += settledBytes) {
    const verbAt = start + uuidBytesLength;
    if (settled.compare(mailId, 0, uuidBytesLength, start, verbAt) === 0)
      return verbs[settled.readUInt8(verbAt)];
  }
  return undefined;
}

/** Prepends a mail, dropping the oldest if full. */
export function rememberSettled(mailbox: SettledMails, mailId: Uint8Array, verb: SettledVerb): void {
  const before = mailbox.settled.subarray(0, (settledMax - 1) * settledBytes);
  const settled = Buffer.allocUnsafe(settledBytes + before.length);
  settled.set(mailId);
  settled[uuidBytesLength] = verbs.indexOf(verb);
  settled.set(before, settledBytes);
  mailbox.settled = settled;
}

/** Whether a list can have this length. */
export function isSettledLength(length: number): boolean {
  return length >= 0 && length % settledBytes === 0;
}

/** Whether the bytes are a valid list. */
export function isSettledList(bytes: Buffer): boolean {
  if (!isSettledLength(bytes.length) || bytes.length > settledMax * settledBytes) return false;
  for (let verbAt = uuidBytesLength; verbAt < bytes.length; verbAt += settledBytes) {
    if (verbs[bytes.readUInt8(verbAt)] === undefined) return false;
  }
  return true;
}
