import { type DeviceKey, fleetIdOf } from '../../../core/identity.ts';
import { copyUuid, formatUuid, generateUuid } from '../../../core/uuid.ts';
import type { Activity } from '../../../domain/devices/device.ts';
import { picked } from '../../../domain/fields.ts';
import type { MailEnd } from '../../../domain/mail/ended-mail.ts';
import { deliveredAs, enqueueDecision, expiryMs } from '../../../domain/mail/enqueue-rules.ts';
import type { Enqueue, MailOutcome, Settle, SettleOutcome, Withdrawal } from '../../../domain/mail/mail.ts';
import { hasRoomForMail, type MailBytesMax, unlimitedMailBytes } from '../../../domain/mail/mail-bytes.ts';
import { delayedFields, sentFields, unfetched } from '../../../domain/mail/mail-fields.ts';
import { writeSequence } from '../../../domain/mail/mail-sequence.ts';
import { isUntouched, markReplaceable } from '../../../domain/mail/replaceable-mails.ts';
import { repeatedSettle, requeuedCount, settledAs, withdrawalOf } from '../../../domain/mail/settle-rules.ts';
import { rememberEnd, rememberedEnd } from '../../../domain/mail/settled-mails.ts';
import { viewOf } from '../connection/bytes.ts';
import type { DelayedMailRow, MailboxRow, MailRow } from '../schema/tables.ts';
import type { UnitOfWork } from '../writes/unit-of-work.ts';
import { addLateFetches, endMail, noteEvent, receiptWithFetches } from './mail-history.ts';

/** Names a mail in its mailbox or in front of it. */
export type MailKey = Pick<MailRow, 'device' | 'id'>;

export interface MailLimits {
  delayedMailsPerDeviceMax: number;
  deadLettersPerFleetMax: number;
  /** Absent: no fleet has a limit. */
  mailBytesMax?: MailBytesMax;
}

/** A delayed mail as a mail that no mailbox has accepted. */
function unaccepted(delayed: DelayedMailRow) {
  const { device, id } = delayed;
  return { device, id, acceptedAtMs: undefined, ...unfetched, ...picked(sentFields, delayed) };
}

/** Preloads what `enqueue` reads. */
export function preloadEnqueue(
  work: UnitOfWork,
  { device, dedupeKey, replaceKey }: Pick<Enqueue, 'device' | 'dedupeKey' | 'replaceKey'>,
): void {
  work.mailboxes.preload({ device });
  work.mailBytes.preload(device);
  if (replaceKey !== undefined) work.replaceable.preloadKey(device, replaceKey);
  if (dedupeKey !== undefined) work.dedupe.preload({ once: viewOf(dedupeKey), device });
}

/** Adds a mail to its mailbox, or to the delayed mail. */
export function enqueue(work: UnitOfWork, params: Enqueue, limits: MailLimits): MailOutcome {
  const { device, dedupeKey, deliverAtMs = work.nowMs, replaceKey } = params;
  const row = work.mailboxes.get({ device });
  const replaced = replaceKey === undefined ? undefined : replaceableMail(work, device, replaceKey);
  const decision = enqueueDecision({
    nowMs: work.nowMs,
    deliverAtMs,
    mailboxMailsMax: params.mailboxMailsMax,
    delayedMailsMax: limits.delayedMailsPerDeviceMax,
    known: dedupeKey && work.dedupe.get({ once: viewOf(dedupeKey), device })?.mail_id,
    mailbox: row,
    delayedMails: row?.delayed ?? 0,
    fleetHasRoom: hasRoom(work, params, replaced, limits),
    replaces: replaced?.state,
  });
  if (decision.does === 'repeat') return repeatedEnqueue(work, device, decision.mailId);
  if (decision.does === 'refuse') return decision.outcome;
  const { mailbox, isDelayed } = decision;
  const mailId = generateUuid();
  if (replaceKey !== undefined) markReplaceable(mailId);
  const place = isDelayed ? undefined : replaced?.queued;
  const mailboxMailsMax = Math.min(params.mailboxMailsMax, delayedFields.mailboxMailsMax.max);
  const delayed: DelayedMailRow = {
    device,
    id: mailId,
    deliverAtMs,
    ttlSeconds: params.ttlSeconds,
    mailboxMailsMax,
    ...picked(sentFields, params),
    payload: viewOf(params.payload),
  };
  if (!isDelayed) writeSequence(mailId, place?.sequence ?? mailbox.tail);
  if (replaced !== undefined) replace(work, mailbox, replaced, place !== undefined, mailId, limits);
  if (isDelayed) {
    work.delayed.put(delayed);
    work.mailBytes.add(device, delayed.payload.length);
    mailbox.delayed += 1;
    work.mailboxes.put(mailbox);
    noteEvent(work, unaccepted(delayed), 'delayed');
  } else {
    work.delayed.noteAbsent(delayed);
    accept(work, mailbox, delayed, place);
  }
  if (replaceKey !== undefined) work.replaceable.add(device, mailId, replaceKey);
  if (dedupeKey !== undefined) work.dedupe.put({ once: viewOf(dedupeKey), device, mail_id: mailId });
  const inPlace = place === undefined ? {} : { isInPlace: true };
  return { result: 'queued', mailId, mailboxSize: mailbox.size, repeated: false, isDelayed, ...inPlace };
}

/** A mail that waits, and that a newer one of its key replaces. */
type ReplacedMail =
  | { state: 'queued'; queued: MailRow; delayed?: never }
  | { state: 'delayed'; delayed: DelayedMailRow; queued?: never };

/** The mail of a key that waits and was never fetched (D31). */
function replaceableMail(work: UnitOfWork, device: DeviceKey, key: string): ReplacedMail | undefined {
  const id = work.replaceable.mailOf(device, key);
  if (id === undefined) return undefined;
  const queued = work.mailQueue.find(device, id);
  if (queued !== undefined) return isUntouched(queued) ? { state: 'queued', queued } : undefined;
  const delayed = work.delayed.get({ device, id });
  return delayed && { state: 'delayed', delayed };
}

/** Ends a mail that is replaced. Its place in the mailbox stays for the new one if that is in place. */
function replace(
  work: UnitOfWork,
  mailbox: MailboxRow,
  { queued, delayed }: ReplacedMail,
  isInPlace: boolean,
  newMailId: Uint8Array,
  limits: MailLimits,
): void {
  if (delayed !== undefined) takeDelayed(work, mailbox, delayed);
  else if (!isInPlace) work.mailQueue.remove(mailbox, queued, work.nowMs);
  const mail = queued ?? unaccepted(delayed);
  endMail(work, mail, 'replaced', limits.deadLettersPerFleetMax, { newMailId });
}

/** True if its fleet may have the bytes of this mail. */
function hasRoom(
  work: UnitOfWork,
  { device, payload }: Enqueue,
  replaced: ReplacedMail | undefined,
  { mailBytesMax = unlimitedMailBytes }: MailLimits,
): boolean {
  const fleetId = fleetIdOf(device);
  const replacedBytes = (replaced?.queued ?? replaced?.delayed)?.payload.length;
  return hasRoomForMail(work.mailBytes.of(fleetId), payload.length, mailBytesMax(fleetId), replacedBytes);
}

/** Outcome for a mail that was queued before. */
export function repeatedEnqueue(work: UnitOfWork, device: DeviceKey, mailId: Uint8Array): MailOutcome {
  const mailboxSize = work.mailboxes.get({ device })?.size ?? 0;
  const isDelayed = work.delayed.get({ device, id: viewOf(mailId) }) !== undefined;
  return { result: 'queued', mailId: copyUuid(mailId), mailboxSize, repeated: true, isDelayed };
}

/** Delivers a due delayed mail to its mailbox, or ends it as `mailbox_full`. Does nothing if it was removed. */
export function deliver(work: UnitOfWork, { device, id }: MailKey, limits: MailLimits): void {
  const mailbox = work.mailboxes.get({ device });
  const delayed = work.delayed.get({ device, id });
  if (mailbox === undefined || delayed === undefined) return;
  takeDelayed(work, mailbox, delayed);
  const event = deliveredAs(mailbox.size, delayed.mailboxMailsMax);
  if (event === 'queued') accept(work, mailbox, delayed);
  else endMail(work, unaccepted(delayed), event, limits.deadLettersPerFleetMax);
}

/** Settles any mail of the mailbox, not only the head (D15). */
export function settle(work: UnitOfWork, settlement: Settle, limits: MailLimits): SettleOutcome {
  const { device, mailId, verb, fetched, readsHead } = settlement;
  const mailbox = work.mailboxes.get({ device });
  if (mailbox === undefined) return { result: 'not_found', mailboxSize: 0 };
  const found = work.mailQueue.find(device, mailId);
  if (found === undefined) {
    // Fetches noted by another front end than the one that ended it, arriving with a repeated settle.
    if (fetched !== undefined) addLateFetches(work, { device, mailId: viewOf(mailId) }, fetched);
    const result = repeatedSettle(verb, rememberedEnd(mailbox, mailId));
    return settledOutcome(work, device, { result, mailboxSize: mailbox.size }, readsHead);
  }
  const event = settledAs(verb, found.requeueCount, found.requeuesMax);
  if (event === 'requeued') {
    const mail = receiptWithFetches(found, fetched);
    const requeued = { ...mail, requeueCount: requeuedCount(mail.requeueCount) };
    work.mailQueue.moveToTail(mailbox, requeued, work.nowMs);
    work.mailboxEvents.push({ device, sequence: mailbox.tail - 1, announcement: undefined });
    work.replaceable.forget(device, mailId);
    noteEvent(work, requeued, event);
  } else end(work, mailbox, found, event, limits, settlement);
  return settledOutcome(work, device, { result: 'settled', mailboxSize: mailbox.size }, readsHead);
}

/** The outcome, to which the head is added once the transaction has read it, behind all its writes. */
function settledOutcome(
  work: UnitOfWork,
  device: DeviceKey,
  outcome: SettleOutcome,
  readsHead = false,
): SettleOutcome {
  if (readsHead && outcome.result === 'settled') work.wantHead(device, outcome);
  return outcome;
}

/** Preloads what `settle` reads. */
export function preloadSettle(work: UnitOfWork, { device, mailId, fetched }: Settle): void {
  work.mailQueue.preload(device, mailId);
  work.replaceable.preload(device, mailId);
  if (fetched !== undefined) work.receipts.preload({ device, mailId: viewOf(mailId) });
}

/** Preloads what `withdraw` reads. */
export function preloadWithdrawal(work: UnitOfWork, device: DeviceKey, mailId: Uint8Array): void {
  work.mailQueue.preload(device, mailId);
  work.replaceable.preload(device, mailId);
  work.delayed.preload({ device, id: viewOf(mailId) });
  work.receipts.preload({ device, mailId: viewOf(mailId) });
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
  const delayed = work.delayed.get({ device, id: viewOf(mailId) });
  if (mailbox !== undefined && found !== undefined) end(work, mailbox, found, 'withdrawn', limits);
  else if (mailbox !== undefined && delayed !== undefined) {
    takeDelayed(work, mailbox, delayed);
    endMail(work, unaccepted(delayed), 'withdrawn', limits.deadLettersPerFleetMax);
  }
  const state = work.receipts.get({ device, mailId: viewOf(mailId) })?.state;
  return { result: withdrawalOf(state), mailboxSize: mailbox?.size ?? 0 };
}

/** Ends an expired mail, if it is still queued. */
export function expire(work: UnitOfWork, { device, id }: MailKey, limits: MailLimits): void {
  const mailbox = work.mailboxes.get({ device });
  const found = work.mailQueue.find(device, id);
  if (mailbox !== undefined && found !== undefined) end(work, mailbox, found, 'expired', limits);
}

/**
 * Adds the fetches counted in memory to the mail or its receipt, every few seconds (D13). Both are preloaded. One that was
 * replaced just before is not answered: its fetch is of the mail in its place, which is.
 */
export function noteFetches(work: UnitOfWork, { device, fetches }: Activity): void {
  for (const { mailId, ...fetched } of fetches) {
    const found = work.mailQueue.find(device, mailId) ?? work.mailQueue.findReplacement(device, mailId);
    if (found === undefined) addLateFetches(work, { device, mailId: viewOf(mailId) }, fetched);
    else {
      const mail = receiptWithFetches(found, fetched);
      work.mailQueue.change(mail);
      if (found.firstFetchedAtMs !== undefined) continue;
      work.replaceable.forget(device, found.id);
      noteEvent(work, mail, 'fetched');
    }
  }
}

/** Adds a mail at the tail of its mailbox and announces it; or puts it in the place of one, which was announced. */
function accept(work: UnitOfWork, mailbox: MailboxRow, delayed: DelayedMailRow, place?: MailRow): void {
  const acceptedAtMs = work.nowMs;
  const expiresAtMs = expiryMs(acceptedAtMs, delayed.ttlSeconds);
  const mail = { expiresAtMs, ...unaccepted(delayed), acceptedAtMs };
  if (place === undefined) work.mailQueue.add(mailbox, mail, work.nowMs);
  else work.mailQueue.replace(place, mail);
  noteEvent(work, mail, 'queued');
  if (place !== undefined) return;
  const announcement = { mailId: formatUuid(mail.id), name: mail.name, mailboxSize: mailbox.size };
  work.mailboxEvents.push({ device: mail.device, sequence: mailbox.tail - 1, announcement });
}

/** Removes a mail from its mailbox for good. */
function end(
  work: UnitOfWork,
  mailbox: MailboxRow,
  found: MailRow,
  by: MailEnd,
  limits: MailLimits,
  { fetched, reply }: Pick<Settle, 'fetched' | 'reply'> = {},
): void {
  work.mailQueue.remove(mailbox, found, work.nowMs);
  rememberEnd(mailbox, found.id, by);
  const ended = receiptWithFetches(found, fetched);
  endMail(work, ended, by, limits.deadLettersPerFleetMax, { reply: reply && viewOf(reply) });
}

function takeDelayed(work: UnitOfWork, mailbox: MailboxRow, delayed: DelayedMailRow): void {
  work.delayed.remove(delayed);
  work.mailBytes.remove(delayed.device, delayed.payload.length);
  mailbox.delayed -= 1;
  work.mailboxes.put(mailbox);
}
