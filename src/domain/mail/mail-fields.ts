import { mailRequeuesMax } from '../../core/bounds.ts';
import { field, type RecordOf } from '../fields.ts';

/** Requeues counted of a mail, which may be requeued more often. */
export const requeueCountMax = 0xffff;
/** Fetches counted of a mail in its mailbox, and of one that has ended. */
export const mailFetchesMax = 0xffffff;
export const receiptFetchesMax = 0x7fffffff;

/**
 * How a mail ended (D16, D17). `mailbox_full`: a delayed mail whose mailbox was full when it was due. `replaced`: never
 * fetched, and followed by a newer mail of its key (D31).
 */
export const mailEnds = [
  'acked',
  'rejected',
  'expired',
  'withdrawn',
  'over_requeued',
  'mailbox_full',
  'replaced',
] as const;
/** Ends that make the mail a dead letter. */
export const deathReasons = ['rejected', 'expired', 'over_requeued', 'mailbox_full'] as const;

/** Fields that a mail has from its sender besides its name and payload, for as long as it is kept. */
const sentOptions = {
  /** One more requeue makes it a dead letter (D16); undefined: never. */
  requeuesMax: field.optional(field.count(mailRequeuesMax)),
};

/** A mail in its mailbox. In the order of LMDB, here and below; what has no fixed length comes last there. */
export const mailFields = {
  id: field.uuid,
  requeueCount: field.count(requeueCountMax),
  ...sentOptions,
  fetchCount: field.count(mailFetchesMax),
  /** This and `expiresAtMs`: by the wall clock if `mails` returns them; as stored in a `MailboxHead`. */
  acceptedAtMs: field.shardTime,
  expiresAtMs: field.shardTime,
  firstFetchedAtMs: field.optional(field.time),
  name: field.name,
  /** The bytes as sent (D11); `{}` for mail without payload. */
  payload: field.bytes,
};
const { requeueCount, fetchCount, firstFetchedAtMs, name, payload } = mailFields;

/** All that a mail is from its sender. */
export const sentFields = { name, payload, ...sentOptions };

/** Number of the last place in a mailbox. */
export const sequenceMax = 2 ** 48 - 1;

/**
 * A mailbox's summary, so that size, head and how long the head waits need no scan. Live sequences are below `tail`, the
 * next one; on LMDB the first is `head` unless the size is 0, in databases none is below it.
 */
export const mailboxFields = {
  size: field.count(0x7fffffff),
  head: field.count(sequenceMax),
  tail: field.count(sequenceMax),
  /** When the mail at the head came there; undefined without mail. */
  waitingSinceMs: field.optional(field.shardTime),
  /** Mail settled last (settled-mails.ts). */
  settled: field.bytes,
};
export type MailboxRecord = RecordOf<typeof mailboxFields>;

export function emptyMailbox(): MailboxRecord {
  return { size: 0, head: 1, tail: 1, waitingSinceMs: undefined, settled: Buffer.alloc(0) };
}

/** A mail that was never fetched. */
export const unfetched = { requeueCount: 0, fetchCount: 0, firstFetchedAtMs: undefined };

/** A mail that waits for its delivery time, in no mailbox yet. */
export const delayedFields = {
  id: field.uuid,
  deliverAtMs: field.shardTime,
  /** Counted from its delivery. */
  ttlSeconds: field.count(0xffffffff),
  /** Limit of its mailbox when it is delivered. */
  mailboxMailsMax: field.count(0x7fffffff),
  ...sentFields,
};

/** Fields of a mail that its receipt has too. */
export const keptFields = { name, requeueCount, fetchCount, firstFetchedAtMs };

/** The receipt of a mail that has ended (D17). */
export const receiptFields = {
  state: field.word(mailEnds),
  requeueCount,
  fetchCount: field.count(receiptFetchesMax),
  /** Undefined if no mailbox ever accepted it. */
  queuedAtMs: field.optional(field.shardTime),
  firstFetchedAtMs,
  settledAtMs: field.shardTime,
  name,
};

/** What its device answered (D31); on LMDB in a table of its own, since most mail has none. */
export const replyFields = { reply: field.optional(field.bytes, 3) };

/** A mail that ended other than intended (D16), with all that it was but its expiry. */
export const letterFields = {
  reason: field.word(deathReasons),
  diedAtMs: field.shardTime,
  name,
  payload,
  queuedAtMs: receiptFields.queuedAtMs,
  fetchCount,
  firstFetchedAtMs,
  requeueCount,
  ...sentOptions,
};
/** Fields that a dead letter has of its mail, besides the payload. */
export const livingFields = { ...keptFields, ...sentOptions };
