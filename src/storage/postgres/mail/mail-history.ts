import { fleetIdOf } from '../../../core/identity.ts';
import { picked } from '../../../domain/fields.ts';
import { isDeath } from '../../../domain/mail/end-rules.ts';
import type { MailEnd } from '../../../domain/mail/ended-mail.ts';
import { firstFetchMs } from '../../../domain/mail/fetch-rules.ts';
import type { Fetches } from '../../../domain/mail/mail.ts';
import { hasCounts, type MailEvent, mailEventText } from '../../../domain/mail/mail-event.ts';
import {
  letterFields,
  mailFetchesMax,
  receiptFetchesMax,
  receiptFields,
} from '../../../domain/mail/mail-fields.ts';
import type { DeadLetterRow, MailRow, ReceiptRow } from '../schema/tables.ts';
import type { UnitOfWork } from '../writes/unit-of-work.ts';

/** A mail in its mailbox, before it, or after it. */
type AnyMail = Omit<MailRow, 'sequence' | 'acceptedAtMs' | 'expiresAtMs'> & {
  /** Undefined if its mailbox never accepted it. */
  acceptedAtMs: number | undefined;
};

/** The mail that a letter was made from. */
export function endedMailOf({ mailId: id, queuedAtMs: acceptedAtMs, ...letter }: DeadLetterRow): AnyMail {
  return { id, acceptedAtMs, ...letter };
}

/** Appends an event of a mail to the log (D17). */
export function noteEvent(work: UnitOfWork, mail: AnyMail, event: MailEvent, newMailId?: Uint8Array): void {
  const text = mailEventText(mail.id, event, hasCounts(event) ? mail : undefined, newMailId);
  work.append({
    device: mail.device,
    kind: 'receipt',
    schema: mail.name,
    payload: Buffer.from(text, 'latin1'),
  });
}

/**
 * Ends a mail that was removed from its mailbox: writes a receipt (D17) with the device's reply (D31), and a dead letter if
 * it failed (D16). `newMailId`: of the mail that replaces it.
 */
export function endMail(
  work: UnitOfWork,
  mail: AnyMail,
  end: MailEnd,
  lettersPerFleetMax: number,
  { reply, newMailId }: { reply?: Buffer | undefined; newMailId?: Uint8Array } = {},
): void {
  const { device, id: mailId, acceptedAtMs: queuedAtMs } = mail;
  const ended = { queuedAtMs, settledAtMs: work.nowMs, diedAtMs: work.nowMs, ...mail };
  work.receipts.put({ device, mailId, reply, ...picked(receiptFields, { state: end, ...ended }) });
  if (isDeath(end)) {
    const letter = picked(letterFields, { reason: end, ...ended });
    work.letters.put({ fleetId: fleetIdOf(device), mailId, device, ...letter }, lettersPerFleetMax);
  }
  work.replaceable.forget(device, mailId);
  noteEvent(work, mail, end, newMailId);
  if (reply !== undefined) work.append({ device, kind: 'reply', schema: mail.name, payload: reply, mailId });
}

/** Adds fetches to a mail (D13). */
export function receiptWithFetches<M extends AnyMail>(mail: M, fetches: Fetches | undefined): M {
  if (fetches === undefined) return mail;
  return {
    ...mail,
    fetchCount: Math.min(mail.fetchCount + fetches.count, mailFetchesMax),
    firstFetchedAtMs: firstFetchMs(mail.firstFetchedAtMs, fetches),
  };
}

/**
 * Adds fetches reported after the mail ended; its receipt, if any, is loaded. None to a mail that was replaced: its fetch came
 * too late, and was not answered.
 */
export function addLateFetches(
  work: UnitOfWork,
  mail: Pick<ReceiptRow, 'device' | 'mailId'>,
  fetches: Fetches,
): void {
  const receipt = work.receipts.get(mail);
  if (receipt === undefined || receipt.state === 'replaced') return;
  work.receipts.put({
    ...receipt,
    fetchCount: Math.min(receipt.fetchCount + fetches.count, receiptFetchesMax),
    firstFetchedAtMs: firstFetchMs(receipt.firstFetchedAtMs, fetches),
  });
}
