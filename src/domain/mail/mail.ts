import type { DeviceKey } from '../../core/identity.ts';
import type { RecordOf } from '../fields.ts';
import type { KeyRefusal } from '../idempotency.ts';
import type { delayedFields, mailFields, sentFields } from './mail-fields.ts';

export type Mail = RecordOf<typeof mailFields>;

export interface MailboxHead {
  size: number;
  /** Undefined exactly when size is 0. */
  mail: Mail | undefined;
}

/** How much of the front of a mailbox is read: no mail that goes beyond the bytes of payloads, nor one behind it. */
export interface MailFront {
  mailsMax: number;
  bytesMax: number;
}

export interface MailboxFront {
  size: number;
  /** In mailbox order, with times as in a `MailboxHead`. */
  mails: Mail[];
}

/** A mail that waits for its delivery time: by the wall clock. */
export type DelayedMail = RecordOf<typeof delayedFields>;

export type SettleVerb = 'ack' | 'reject' | 'requeue';

/** Fetches of a mail since the last report, and the time of the first (D13): the earliest reported time wins. */
export interface Fetches {
  count: number;
  firstMs: number;
}

export interface Settle {
  device: DeviceKey;
  mailId: Uint8Array;
  verb: SettleVerb;
  /** Fetches that the front end has not reported yet, so that the receipt includes them at once. */
  fetched?: Fetches;
  /** The device's answer, a JSON object, kept where the settlement ends the mail (D31). */
  reply?: Uint8Array;
  /** Asks for the head of the mailbox behind it, where that is read in the transaction. */
  readsHead?: boolean;
}

/**
 * The outcome of a settlement (D15). The verbs that removed mail, withdrawals and final requeues included, are
 * remembered for the last 32 removals: `settled` for the same verb again, `already_settled` for another. `not_found`
 * otherwise: for expired or delayed mail, or an unknown device, whose size is 0.
 */
export interface SettleOutcome {
  result: 'settled' | 'not_found' | 'already_settled';
  mailboxSize: number;
  /** The mailbox's head behind a settlement that asked for it. */
  head?: MailboxHead | undefined;
}

/** Absent fields of a mail are undefined. */
export interface Enqueue extends Partial<Omit<RecordOf<typeof sentFields>, 'payload'>> {
  device: DeviceKey;
  name: string;
  /** Must not change until the call settles. */
  payload: Uint8Array;
  /** Counted from when the mailbox accepts it. Expired mail may be visible for some seconds more. */
  ttlSeconds: number;
  mailboxMailsMax: number;
  /** Delivery time, by the wall clock; absent or past: now. */
  deliverAtMs?: number;
  /** The mail replaces the one of this key that waits and was never fetched (D31). */
  replaceKey?: string;
  /**
   * Identifies the mail so that it is queued once however often it is sent: a UUIDv7's 16 bytes and 1 to 32 more.
   * Remembered until `pruneDedupeKeys`, whatever becomes of the mail or the device.
   */
  dedupeKey?: Uint8Array;
  /** The sender's key, and SHA-256 of what must be identical when it repeats, as in `Ingest` (D18). */
  idempotency?: { key: Uint8Array; digest: Uint8Array };
}

/** The outcome of sending a mail. */
export type MailOutcome =
  /** `repeated`: it was queued before under this id; nothing was done now. */
  | {
      result: 'queued';
      mailId: Uint8Array;
      mailboxSize: number;
      repeated: boolean;
      /** It waits for its delivery time. */
      isDelayed: boolean;
      /** It stands where the mail stood that it replaced, which was announced before. */
      isInPlace?: boolean;
    }
  | { result: 'mailbox_full'; mailboxSize: number }
  /** The device has the maximum of delayed mails (`delayedMailsPerDeviceMax`). */
  | { result: 'delayed_full' }
  /** The mail of the fleet has as many bytes as it may (`mailBytesPerFleetMax`). */
  | { result: 'fleet_mail_full' }
  | { result: 'device_not_found' };

/** Outcome of sending a mail; with `idempotency`, the key may also be refused. */
export type EnqueueOutcome = MailOutcome | { result: KeyRefusal };

export interface Withdrawal {
  /** `withdrawn` also if it was before; `already_settled` for any other end, as long as its receipt is retained. */
  result: 'withdrawn' | 'not_found' | 'already_settled';
  mailboxSize: number;
}

export interface Replay {
  device: DeviceKey;
  mailId: Uint8Array;
  ttlSeconds: number;
  mailboxMailsMax: number;
}

/** A replayed letter becomes a new mail with its own id, counts and receipt; if that is refused, the letter stays. */
export type ReplayOutcome = MailOutcome | { result: 'mail_not_found' };

/** One mail announcement, as sent in `new_mail` (D20). */
export interface Announcement {
  mailId: string;
  name: string;
  mailboxSize: number;
}
