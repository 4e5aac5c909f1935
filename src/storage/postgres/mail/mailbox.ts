import type { DeviceKey } from '../../../core/identity.ts';
import { copyUuid, formatUuid, generateUuid } from '../../../core/uuid.ts';
import type { Activity } from '../../../domain/devices/device.ts';
import type {
  Enqueue,
  Fetches,
  MailOutcome,
  Settle,
  SettleOutcome,
  Withdrawal,
} from '../../../domain/mail/mail.ts';
import { writeSequence } from '../../../domain/mail/mail-sequence.ts';
import {
  endOfVerb,
  rememberSettled,
  type SettledVerb,
  settledVerb,
} from '../../../domain/mail/settled-mails.ts';
import { viewOf } from '../connection/bytes.ts';
import type { DelayedMailRow, MailboxRow, MailRow } from '../schema/tables.ts';
import type { UnitOfWork } from '../writes/unit-of-work.ts';
import { addLateFetches, endMail, noteEvent, receiptWithFetches } from './mail-history.ts';

/** Maximum of the column; more means no limit. */
const integerMax = 0x7fffffff;
/** Maximum requeue count of a mail. */
const requeueCountMax = 0xffff;

export interface MailLimits {
  delayedMailsPerDeviceMax: number;
  deadLettersPerFleetMax: number;
}

/** A delayed mail as its mailbox will get it. */
function deliverable(delayed: DelayedMailRow): Omit<MailRow, 'sequence'> & { accepted_at_ms: number } {
  const { device, mail_id, name, payload, requeues_max } = delayed;
  const counts = { requeue_count: 0, requeues_max, fetch_count: 0, first_fetched_at_ms: null };
  return { device, mail_id, name, payload, ...counts, accepted_at_ms: 0, expires_at_ms: 0 };
}

/** Preloads what `enqueue` reads. */
export function preloadEnqueue(
  work: UnitOfWork,
  { device, dedupeKey }: Pick<Enqueue, 'device' | 'dedupeKey'>,
): void {
  work.mailboxes.preload({ device });
  if (dedupeKey !== undefined) work.dedupe.preload({ once: viewOf(dedupeKey), device });
}

/** Adds a mail to its mailbox, or to the delayed mail. */
export function enqueue(work: UnitOfWork, params: Enqueue, limits: MailLimits): MailOutcome {
  const { device, name, dedupeKey, deliverAtMs } = params;
  const before = dedupeKey && work.dedupe.get({ once: viewOf(dedupeKey), device });
  if (before !== undefined) return repeatedEnqueue(work, device, before.mail_id);
  const mailbox = work.mailboxes.get({ device });
  if (mailbox === undefined) return { result: 'device_not_found' };
  const isDelayed = deliverAtMs !== undefined && deliverAtMs > work.nowMs;
  if (isDelayed) {
    if (mailbox.delayed >= limits.delayedMailsPerDeviceMax) return { result: 'delayed_full' };
  } else if (mailbox.size >= params.mailboxMailsMax) {
    return { result: 'mailbox_full', mailboxSize: mailbox.size };
  }
  const mailId = generateUuid();
  if (!isDelayed) writeSequence(mailId, mailbox.tail);
  const delayed: DelayedMailRow = {
    device,
    mail_id: mailId,
    deliver_at_ms: deliverAtMs ?? 0,
    ttl_seconds: params.ttlSeconds,
    mailbox_mails_max: Math.min(params.mailboxMailsMax, integerMax),
    name,
    payload: viewOf(params.payload),
    requeues_max: params.requeuesMax ?? null,
  };
  if (isDelayed) {
    work.delayed.put(delayed);
    mailbox.delayed += 1;
    work.mailboxes.put(mailbox);
    noteEvent(work, { ...deliverable(delayed), accepted_at_ms: null }, 'delayed');
  } else {
    work.delayed.noteAbsent(delayed);
    accept(work, mailbox, delayed);
  }
  if (dedupeKey !== undefined) work.dedupe.put({ once: viewOf(dedupeKey), device, mail_id: mailId });
  return { result: 'queued', mailId, mailboxSize: mailbox.size, repeated: false, isDelayed };
}

/** Outcome for a mail that was queued before. */
export function repeatedEnqueue(work: UnitOfWork, device: DeviceKey, mailId: Uint8Array): MailOutcome {
  const mailboxSize = work.mailboxes.get({ device })?.size ?? 0;
  const isDelayed = work.delayed.get({ device, mail_id: viewOf(mailId) }) !== undefined;
  return { result: 'queued', mailId: copyUuid(mailId), mailboxSize, repeated: true, isDelayed };
}

/** Delivers a due delayed mail to its mailbox, or ends it as `mailbox_full`. Does nothing if it was removed. */
export function deliver(
  work: UnitOfWork,
  { device, mail_id }: Pick<DelayedMailRow, 'device' | 'mail_id'>,
  limits: MailLimits,
): void {
  const mailbox = work.mailboxes.get({ device });
  const delayed = work.delayed.get({ device, mail_id });
  if (mailbox === undefined || delayed === undefined) return;
  takeDelayed(work, mailbox, delayed);
  if (mailbox.size >= delayed.mailbox_mails_max) {
    const mail = { ...deliverable(delayed), accepted_at_ms: null };
    endMail(work, mail, 'mailbox_full', limits.deadLettersPerFleetMax);
    return;
  }
  accept(work, mailbox, delayed);
}

/** Settles any mail of the mailbox, not only the head (D15). */
export function settle(
  work: UnitOfWork,
  { device, mailId, verb, fetched }: Settle,
  limits: MailLimits,
): SettleOutcome {
  const mailbox = work.mailboxes.get({ device });
  if (mailbox === undefined) return { result: 'not_found', mailboxSize: 0 };
  const found = work.mailQueue.find(device, mailId);
  if (found === undefined) {
    // Fetches noted by another front end than the one that ended it, arriving with a repeated settle.
    if (fetched !== undefined) addLateFetches(work, { device, mail_id: viewOf(mailId) }, fetched);
    const before = settledVerb(mailbox, mailId);
    const result = !before ? 'not_found' : before === verb ? 'settled' : 'already_settled';
    return { result, mailboxSize: mailbox.size };
  }
  if (verb === 'requeue' && mayRequeue(found)) {
    const mail = receiptWithFetches(found, fetched);
    const requeued = { ...mail, requeue_count: Math.min(mail.requeue_count + 1, requeueCountMax) };
    work.mailQueue.moveToTail(mailbox, requeued);
    work.mailboxEvents.push({ device, sequence: mailbox.tail - 1, announcement: undefined });
    noteEvent(work, requeued, 'requeued');
  } else end(work, mailbox, found, verb, limits, fetched);
  return { result: 'settled', mailboxSize: mailbox.size };
}

/** Preloads what `settle` reads. */
export function preloadSettle(work: UnitOfWork, { device, mailId, fetched }: Settle): void {
  work.mailQueue.preload(device, mailId);
  if (fetched !== undefined) work.receipts.preload({ device, mail_id: viewOf(mailId) });
}

/** Preloads what `withdraw` reads. */
export function preloadWithdrawal(work: UnitOfWork, device: DeviceKey, mailId: Uint8Array): void {
  work.mailQueue.preload(device, mailId);
  work.delayed.preload({ device, mail_id: viewOf(mailId) });
  work.receipts.preload({ device, mail_id: viewOf(mailId) });
}

/** Withdraws a mail; if the device settles it later, it was settled by another verb. */
export function withdraw(
  work: UnitOfWork,
  device: DeviceKey,
  mailId: Uint8Array,
  limits: MailLimits,
): Withdrawal {
  const mailbox = work.mailboxes.get({ device });
  const found = work.mailQueue.find(device, mailId);
  const delayed = work.delayed.get({ device, mail_id: viewOf(mailId) });
  if (mailbox !== undefined && found !== undefined) end(work, mailbox, found, 'withdraw', limits);
  else if (mailbox !== undefined && delayed !== undefined) {
    takeDelayed(work, mailbox, delayed);
    const mail = { ...deliverable(delayed), accepted_at_ms: null };
    endMail(work, mail, 'withdrawn', limits.deadLettersPerFleetMax);
  }
  const state = work.receipts.get({ device, mail_id: viewOf(mailId) })?.state;
  const result = !state ? 'not_found' : state === 'withdrawn' ? 'withdrawn' : 'already_settled';
  return { result, mailboxSize: mailbox?.size ?? 0 };
}

/** Ends an expired mail, if it is still queued. */
export function expire(
  work: UnitOfWork,
  { device, mail_id }: Pick<MailRow, 'device' | 'mail_id'>,
  limits: MailLimits,
): void {
  const mailbox = work.mailboxes.get({ device });
  const found = work.mailQueue.find(device, mail_id);
  if (mailbox === undefined || found === undefined) return;
  work.mailQueue.remove(mailbox, found);
  endMail(work, found, 'expired', limits.deadLettersPerFleetMax);
}

/** Adds the fetches counted in memory to the mail or its receipt, every few seconds (D13). Both are preloaded. */
export function noteFetches(work: UnitOfWork, { device, fetches }: Activity): void {
  for (const { mailId, ...fetched } of fetches) {
    const found = work.mailQueue.find(device, mailId);
    if (found === undefined) addLateFetches(work, { device, mail_id: viewOf(mailId) }, fetched);
    else {
      const mail = receiptWithFetches(found, fetched);
      work.mailQueue.change(mail);
      if (found.first_fetched_at_ms === null) noteEvent(work, mail, 'fetched');
    }
  }
}

/** Adds a mail at the tail of its mailbox and announces it. */
function accept(work: UnitOfWork, mailbox: MailboxRow, delayed: DelayedMailRow): void {
  const accepted_at_ms = work.nowMs;
  const expires_at_ms = work.nowMs + delayed.ttl_seconds * 1_000;
  const mail = { ...deliverable(delayed), accepted_at_ms, expires_at_ms };
  work.mailQueue.add(mailbox, mail);
  noteEvent(work, mail, 'queued');
  const announcement = { mailId: formatUuid(mail.mail_id), name: mail.name, mailboxSize: mailbox.size };
  work.mailboxEvents.push({ device: mail.device, sequence: mailbox.tail - 1, announcement });
}

/** Removes a mail for good, and remembers the verb. */
function end(
  work: UnitOfWork,
  mailbox: MailboxRow,
  found: MailRow,
  verb: SettledVerb,
  limits: MailLimits,
  fetched?: Fetches,
): void {
  work.mailQueue.remove(mailbox, found);
  rememberSettled(mailbox, found.mail_id, verb);
  endMail(work, receiptWithFetches(found, fetched), endOfVerb[verb], limits.deadLettersPerFleetMax);
}

function takeDelayed(work: UnitOfWork, mailbox: MailboxRow, delayed: DelayedMailRow): void {
  work.delayed.remove(delayed);
  mailbox.delayed -= 1;
  work.mailboxes.put(mailbox);
}

function mayRequeue({ requeues_max, requeue_count }: MailRow): boolean {
  return requeues_max === null || requeue_count < requeues_max;
}
