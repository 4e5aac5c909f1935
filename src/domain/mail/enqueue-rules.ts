import { picked, type RecordOf } from '../fields.ts';
import type { Enqueue, MailOutcome, Replay } from './mail.ts';
import { sentFields } from './mail-fields.ts';

/** Facts that decide whether a mail is accepted when it is sent. */
export interface EnqueueFacts<Mailbox> {
  nowMs: number;
  /** Now or past for a mail that is not to wait. */
  deliverAtMs: number;
  mailboxMailsMax: number;
  delayedMailsMax: number;
  /** The mail queued before under the same dedupe key. */
  known: Uint8Array | undefined;
  /** Undefined without a device. */
  mailbox: Mailbox | undefined;
  /** Delayed mails of the device; any number if this mail is not delayed. */
  delayedMails: number;
  /** True if the mail of its fleet may have this one's bytes, too. */
  fleetHasRoom: boolean;
  /** Where the mail waits that this one replaces, if it does. */
  replaces?: 'queued' | 'delayed' | undefined;
}

/** Decision on a mail that is sent. */
export type EnqueueDecision<Mailbox> =
  | { does: 'repeat'; mailId: Uint8Array }
  | { does: 'refuse'; outcome: Exclude<MailOutcome, { result: 'queued' }> }
  | { does: 'admit'; mailbox: Mailbox; isDelayed: boolean };

/**
 * A dedupe key holds whatever became of the mail or the device. A full mailbox refuses the new mail and tells the
 * sender (D16); a delayed mail takes no place in it until it is due, but one of the device's places for such mail. What
 * takes the place of another mail needs none (D31). Each takes bytes of what its fleet's mail may have, from when it is
 * sent until it ends.
 */
export function enqueueDecision<Mailbox extends { size: number }>(
  facts: EnqueueFacts<Mailbox>,
): EnqueueDecision<Mailbox> {
  const { known, mailbox, replaces } = facts;
  if (known !== undefined) return { does: 'repeat', mailId: known };
  if (mailbox === undefined) return { does: 'refuse', outcome: { result: 'device_not_found' } };
  const isDelayed = facts.deliverAtMs > facts.nowMs;
  if (isDelayed) {
    if (replaces !== 'delayed' && facts.delayedMails >= facts.delayedMailsMax)
      return { does: 'refuse', outcome: { result: 'delayed_full' } };
  } else if (replaces !== 'queued' && mailbox.size >= facts.mailboxMailsMax) {
    return { does: 'refuse', outcome: { result: 'mailbox_full', mailboxSize: mailbox.size } };
  }
  if (!facts.fleetHasRoom) return { does: 'refuse', outcome: { result: 'fleet_mail_full' } };
  return { does: 'admit', mailbox, isDelayed };
}

/** State of a delayed mail once it is due: a dead letter if its mailbox is full (D16). */
export function deliveredAs(mailboxSize: number, mailboxMailsMax: number): 'queued' | 'mailbox_full' {
  return mailboxSize < mailboxMailsMax ? 'queued' : 'mailbox_full';
}

/** When a mail expires (D16): its life begins when its mailbox accepts it. */
export function expiryMs(acceptedAtMs: number, ttlSeconds: number): number {
  return acceptedAtMs + ttlSeconds * 1_000;
}

/** The new mail that a dead letter is replayed as (D16). */
export function replayedMail(
  { device, ttlSeconds, mailboxMailsMax }: Replay,
  letter: RecordOf<typeof sentFields>,
): Enqueue {
  return { ...picked(sentFields, letter), device, ttlSeconds, mailboxMailsMax };
}
