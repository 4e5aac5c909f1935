import type { DeviceKey } from '../../core/identity.ts';

/** Of a mail that nobody waits for any more, how it ended (D16, D17). */
export type MailEnd =
  | 'acked'
  | 'rejected'
  | 'expired'
  | 'withdrawn'
  | 'over_requeued'
  /** A delayed mail whose mailbox was full when its time came. */
  | 'mailbox_full';
/** Those whose mail goes to the dead letters. */
export type DeathReason = Extract<MailEnd, 'rejected' | 'expired' | 'over_requeued' | 'mailbox_full'>;

const deaths: ReadonlySet<MailEnd> = new Set<DeathReason>([
  'rejected',
  'expired',
  'over_requeued',
  'mailbox_full',
]);

/** Whether a mail that ends so goes to the dead letters. */
export function isDeath(end: MailEnd): end is DeathReason {
  return deaths.has(end);
}

/** What is known of a mail (D17). Times by the wall clock. */
export interface Receipt {
  device: DeviceKey;
  mailId: Buffer;
  name: string;
  /** `delayed` until its mailbox accepts it, then `queued` until it ends. */
  state: 'delayed' | 'queued' | MailEnd;
  /** While it is delayed. */
  deliverAtMs: number | undefined;
  queuedAtMs: number | undefined;
  /** While it is queued. */
  expiresAtMs: number | undefined;
  fetchCount: number;
  firstFetchedAtMs: number | undefined;
  requeueCount: number;
  settledAtMs: number | undefined;
}

/** A mail that ended otherwise than it was meant to, without its payload. */
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

/** Which dead letters of a fleet; an absent field takes all. Times by the wall clock, `toMs` not included. */
export interface DeadLetterFilter {
  device?: DeviceKey;
  name?: string;
  reason?: DeathReason;
  fromMs?: number;
  toMs?: number;
}

export function isWanted(
  letter: DeadLetter,
  { device, name, reason, fromMs, toMs }: DeadLetterFilter,
): boolean {
  return (
    (device === undefined || letter.device === device) &&
    (name === undefined || letter.name === name) &&
    (reason === undefined || letter.reason === reason) &&
    (fromMs === undefined || letter.diedAtMs >= fromMs) &&
    (toMs === undefined || letter.diedAtMs < toMs)
  );
}
