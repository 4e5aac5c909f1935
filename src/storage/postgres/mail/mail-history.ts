import { fleetIdOf } from '../../../core/identity.ts';
import { isDeath } from '../../../domain/mail/end-rules.ts';
import type { MailEnd } from '../../../domain/mail/ended-mail.ts';
import { firstFetchMs, mailFetchesMax } from '../../../domain/mail/fetch-rules.ts';
import type { Fetches } from '../../../domain/mail/mail.ts';
import { hasCounts, type MailEvent, mailEventText } from '../../../domain/mail/mail-event.ts';
import type { DeadLetterRow, MailRow } from '../schema/tables.ts';
import type { UnitOfWork } from '../writes/unit-of-work.ts';

/** Maximum of the column. */
const receiptFetchesMax = 0x7fffffff;

/** A mail in its mailbox, before it, or after it. */
type AnyMail = Omit<MailRow, 'sequence' | 'accepted_at_ms' | 'expires_at_ms'> & {
  /** Null if its mailbox never accepted it. */
  accepted_at_ms: number | null;
};

/** The mail that a letter was made from. */
export function endedMailOf({ queued_at_ms, ...letter }: DeadLetterRow): AnyMail {
  return { ...letter, accepted_at_ms: queued_at_ms };
}

/** Appends an event of a mail to the log (D17). */
export function noteEvent(work: UnitOfWork, mail: AnyMail, event: MailEvent, newMailId?: Uint8Array): void {
  const counts = {
    requeueCount: mail.requeue_count,
    fetchCount: mail.fetch_count,
    firstFetchedAtMs: mail.first_fetched_at_ms ?? undefined,
  };
  const text = mailEventText(mail.mail_id, event, hasCounts(event) ? counts : undefined, newMailId);
  work.append({
    device: mail.device,
    kind: 'receipt',
    schema: mail.name,
    payload: Buffer.from(text, 'latin1'),
  });
}

/** Ends a mail that was removed from its mailbox: writes a receipt (D17), and a dead letter if it failed (D16). */
export function endMail(work: UnitOfWork, mail: AnyMail, end: MailEnd, lettersPerFleetMax: number): void {
  const { device, mail_id, name, fetch_count, first_fetched_at_ms, requeue_count } = mail;
  const queued_at_ms = mail.accepted_at_ms;
  const common = { device, mail_id, name, fetch_count, first_fetched_at_ms, requeue_count, queued_at_ms };
  work.receipts.put({ ...common, state: end, settled_at_ms: work.nowMs });
  if (isDeath(end)) {
    const { payload, requeues_max } = mail;
    const fleet_id = fleetIdOf(device);
    const letter = { ...common, fleet_id, reason: end, died_at_ms: work.nowMs, payload, requeues_max };
    work.letters.put(letter, lettersPerFleetMax);
  }
  noteEvent(work, mail, end);
}

/** Adds fetches to a mail (D13). */
export function receiptWithFetches<M extends AnyMail>(mail: M, fetches: Fetches | undefined): M {
  if (fetches === undefined) return mail;
  return {
    ...mail,
    fetch_count: Math.min(mail.fetch_count + fetches.count, mailFetchesMax),
    first_fetched_at_ms: firstFetchMs(mail.first_fetched_at_ms ?? undefined, fetches),
  };
}

/** Adds fetches reported after the mail ended; its receipt, if any, is loaded. */
export function addLateFetches(
  work: UnitOfWork,
  mail: Pick<MailRow, 'device' | 'mail_id'>,
  fetches: Fetches,
): void {
  const receipt = work.receipts.get(mail);
  if (receipt === undefined) return;
  work.receipts.put({
    ...receipt,
    fetch_count: Math.min(receipt.fetch_count + fetches.count, receiptFetchesMax),
    first_fetched_at_ms: firstFetchMs(receipt.first_fetched_at_ms ?? undefined, fetches),
  });
}
