import type { DeviceKey } from '../../core/identity.ts';

/** How a mail ended (D16, D17). */
export type MailEnd =
  | 'acked'
  | 'rejected'
  | 'expired'
  | 'withdrawn'
  | 'over_requeued'
  /** A delayed mail whose mailbox was full when it was due. */
  | 'mailbox_full';
/** Ends that make the mail a dead letter. */
export type DeathReason = Extract<MailEnd, 'rejected' | 'expired' | 'over_requeued' | 'mailbox_full'>;

/** The state of a mail (D17). Times by the wall clock. */
export interface Receipt {
  device: DeviceKey;
  mailId: Buffer;
  name: string;
  /** `delayed` until the mailbox accepts it, then `queued` until it ends. */
  state: 'delayed' | 'queued' | MailEnd;
  /** Only while delayed. */
  deliverAtMs: number | undefined;
  queuedAtMs: number | undefined;
  /** Only while queued. */
  expiresAtMs: number | undefined;
  fetchCount: number;
  firstFetchedAtMs: number | undefined;
  requeueCount: number;
  settledAtMs: number | undefined;
}

/** A mail that ended other than intended, without its payload. */
export interface DeadLetter {
  device: DeviceKey;
  mailId: Buffer;
  name: string;
  reason: DeathReason;
  diedAtMs: number;
  queuedAtMs: number | undefined;
  fetchCount: number;
  requeueCount: number;
  payloadBytes: number;
}

export interface DeadLetterWithPayload extends DeadLetter {
  payload: Buffer;
}

/** Filter for dead letters of a fleet; absent fields match all. Times by the wall clock, `toMs` exclusive. */
export interface DeadLetterFilter {
  device?: DeviceKey;
  name?: string;
  /** Any of them. */
  reasons?: readonly DeathReason[];
  fromMs?: number;
  toMs?: number;
}

export function isWanted(
  letter: DeadLetter,
  { device, name, reasons, fromMs, toMs }: DeadLetterFilter,
): boolean {
  return (
    (device === undefined || letter.device === device) &&
    (name === undefined || letter.name === name) &&
    (reasons === undefined || reasons.includes(letter.reason)) &&
    (fromMs === undefined || letter.diedAtMs >= fromMs) &&
    (toMs === undefined || letter.diedAtMs < toMs)
  );
}
