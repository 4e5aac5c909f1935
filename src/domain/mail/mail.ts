import type { DeviceKey } from '../../core/identity.ts';
import type { KeyRefusal } from '../idempotency.ts';

export interface Mail {
  /** UUIDv7, 16 bytes. */
  id: Buffer;
  name: string;
  /** The bytes as they were sent (D11); `{}` for mail without payload. */
  payload: Buffer;
  requeueCount: number;
  /** One requeue more makes it a dead letter (D16); undefined: never. */
  requeuesMax: number | undefined;
  fetchCount: number;
  /** This and the next: by the wall clock where `mails` answers them; the head has them as they are kept. */
  acceptedAtMs: number;
  expiresAtMs: number;
  firstFetchedAtMs: number | undefined;
}

export interface MailboxHead {
  size: number;
  /** Undefined exactly when size is 0. */
  mail: Mail | undefined;
}

export type SettleVerb = 'ack' | 'reject' | 'requeue';

/** How often a mail was fetched since that was last told, and when first (D13): the earliest that is told holds. */
export interface Fetches {
  count: number;
  firstMs: number;
}

export interface Settle {
  device: DeviceKey;
  mailId: Uint8Array;
  verb: SettleVerb;
  /** What the front end still held of that mail, so that its receipt has it at once. */
  fetched?: Fetches;
}

/**
 * D15. What removed a mail, a withdrawal and a requeue too many among them, is remembered of the 32 last ones that were
 * removed so: `settled` for the same verb again, `already_settled` for another. Others are `not_found`: mail that
 * expired, or that waits for its time, or of a device that is not there, whose size is 0.
 */
export interface SettleOutcome {
  result: 'settled' | 'not_found' | 'already_settled';
  mailboxSize: number;
}

export interface Enqueue {
  device: DeviceKey;
  name: string;
  /** Stays as it is until the call settles. */
  payload: Uint8Array;
  /** From when its mailbox accepts it. A mail whose life is over may be seen for some seconds more. */
  ttlSeconds: number;
  mailboxMailsMax: number;
  /** Requeues after which one more makes it a dead letter, at most `mailRequeuesMax` of core/bounds.ts; absent: never. */
  requeuesMax?: number;
  /** When its mailbox is to accept it, by the wall clock; absent or past: now. */
  deliverAtMs?: number;
  /**
   * What this mail is for, so that it is queued once however often it is sent: a UUIDv7's 16 bytes and 1 to 32
   * more. Remembered until `pruneDedupeKeys`, whatever becomes of the mail and of the device.
   */
  dedupeKey?: Uint8Array;
  /** The sender's key and SHA-256 of what must be the same when it comes again, as `Ingest` has them (D18). */
  idempotency?: { key: Uint8Array; digest: Uint8Array };
}

/** What becomes of a mail that is sent. */
export type MailOutcome =
  /** `repeated`: it was queued before, under that id, and nothing was done now. */
  | {
      result: 'queued';
      mailId: Uint8Array;
      mailboxSize: number;
      repeated: boolean;
      /** It waits for its time of delivery. */
      isDelayed: boolean;
    }
  | { result: 'mailbox_full'; mailboxSize: number }
  /** As many mails of the device wait for their time as may (`delayedMailsPerDeviceMax`). */
  | { result: 'delayed_full' }
  | { result: 'device_not_found' };

/** With `idempotency`, the key may stand for something else, or may not be taken. */
export type EnqueueOutcome = MailOutcome | { result: KeyRefusal };

export interface Withdrawal {
  /** `withdrawn` also when it was before; `already_settled` for any other end, as long as its receipt is kept. */
  result: 'withdrawn' | 'not_found' | 'already_settled';
  mailboxSize: number;
}

export interface Replay {
  device: DeviceKey;
  mailId: Uint8Array;
  ttlSeconds: number;
  mailboxMailsMax: number;
}

/** A replayed letter is a new mail with an id, counts and a receipt of its own; if it is refused, the letter stays. */
export type ReplayOutcome = MailOutcome | { result: 'mail_not_found' };

/** One announced mail, as `new_mail` carries it (D20). */
export interface Announcement {
  mailId: string;
  name: string;
  mailboxSize: number;
}
