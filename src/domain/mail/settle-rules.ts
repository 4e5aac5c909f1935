import type { MailEnd } from './ended-mail.ts';
import type { SettleOutcome, SettleVerb, Withdrawal } from './mail.ts';
import { requeueCountMax } from './mail-fields.ts';

const endOfVerb: Readonly<Record<SettleVerb, MailEnd>> = {
  ack: 'acked',
  reject: 'rejected',
  requeue: 'over_requeued',
};

/**
 * Result of a verb for a mail that is in the mailbox, at its head or not (D15): a requeued one goes to the tail
 * (D14), unless it was requeued as often as it may (D16).
 */
export function settledAs(
  verb: SettleVerb,
  requeueCount: number,
  requeuesMax: number | undefined,
): 'requeued' | MailEnd {
  const mayRequeue = requeuesMax === undefined || requeueCount < requeuesMax;
  return verb === 'requeue' && mayRequeue ? 'requeued' : endOfVerb[verb];
}

/** The requeue count of a mail that is requeued (D14). */
export function requeuedCount(before: number): number {
  return Math.min(before + 1, requeueCountMax);
}

/** The answer for a mail that is not in the mailbox (D15), by the end that the mailbox remembers of it. */
export function repeatedSettle(verb: SettleVerb, end: MailEnd | undefined): SettleOutcome['result'] {
  if (end === undefined) return 'not_found';
  return end === endOfVerb[verb] ? 'settled' : 'already_settled';
}

/** The answer to withdrawing a mail (D17), by how it has ended, now or before. */
export function withdrawalOf(end: MailEnd | undefined): Withdrawal['result'] {
  if (end === undefined) return 'not_found';
  return end === 'withdrawn' ? 'withdrawn' : 'already_settled';
}
