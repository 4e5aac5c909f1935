import { fleetIdOf } from '../../../core/identity.ts';
import { isDeath, type MailEnd } from '../../../domain/mail/ended-mail.ts';
import type { Fetches } from '../../../domain/mail/mail.ts';
import { hasCounts, type MailEvent, mailEventText } from '../../../domain/mail/mail-event.ts';
import type { DeadLetterRow, MailRow } from '../schema/tables.ts';
import type { UnitOfWork } from '../writes/unit-of-work.ts';

/** Of a mail fetches are counted up to this, and of a receipt; a column holds no more than the latter. */
const mailFetchesMax = 0xffffff;
const receiptFetchesMax = 0x7fffffff;

/** A mail wherever it is: in its mailbox, before it, or behind it. */
type AnyMail = Omit<MailRow, 'sequence' | 'accepted_at_ms' | 'expires_at_ms'> & {
  /** Null for one that its mailbox never accepted. */
  accepted_at_ms: number | null;
};

/** The mail of a letter, as it was. */
export function endedMailOf({ queued_at_ms, ...letter }: DeadLetterRow): AnyMail {
  return { ...letter, accepted_at_ms: queued_at_ms };
}

/** Notes a change of a mail in the log (D17). */
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

/** The end of a mail that was taken from where it stood: a receipt (D17), and a letter where it was not done (D16). */
export function endMail(work: UnitOfWork, mail: AnyMail, end: MailEnd, lettersPerFleetMax: number): void {
  const { device, mail_id, name, fetch_count, first_fetched_at_ms, requeue_count } = mail;
  const queued_at_ms = mail.accepted_at_ms;
  const kept = { device, mail_id, name, fetch_count, first_fetched_at_ms, requeue_count, queued_at_ms };
  work.receipts.put({ ...kept, state: end, settled_at_ms: work.nowMs });
  if (isDeath(end)) {
    const { payload, requeues_max } = mail;
    const fleet_id = fleetIdOf(device);
    const letter = { ...kept, fleet_id, reason: end, died_at_ms: work.nowMs, payload, requeues_max };
    work.letters.put(letter, lettersPerFleetMax);
  }
  noteEvent(work, mail, end);
}

/** Fetched so often more, for the first time then if never before that (D13): who tells later may have seen it earlier. */
export function receiptWithFetches<M extends AnyMail>(mail: M, fetches: Fetches | undefined): M {
  if (fetches === undefined) return mail;
  return {
    ...mail,
    fetch_count: Math.min(mail.fetch_count + fetches.count, mailFetchesMax),
    first_fetched_at_ms: Math.min(mail.first_fetched_at_ms ?? fetches.firstMs, fetches.firstMs),
  };
}

/** Of a mail that ended before they were told; its receipt is loaded, if it is there. */
export function addLateFetches(
  work: UnitOfWork,
  mail: Pick<MailRow, 'device' | 'mail_id'>,
  { count, firstMs }: Fetches,
): void {
  const receipt = work.receipts.get(mail);
  if (receipt === undefined) return;
  work.receipts.put({
    ...receipt,
    fetch_count: Math.min(receipt.fetch_count + count, receiptFetchesMax),
    first_fetched_at_ms: Math.min(receipt.first_fetched_at_ms ?? firstMs, firstMs),
  });
}
