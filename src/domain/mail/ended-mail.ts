import type { DeviceKey } from '../../core/identity.ts';
import type { RecordOf } from '../fields.ts';
import type { deathReasons, letterFields, mailEnds, receiptFields, replyFields } from './mail-fields.ts';

export type MailEnd = (typeof mailEnds)[number];
export type DeathReason = (typeof deathReasons)[number];

/** The state of a mail (D17). Times by the wall clock. */
export interface Receipt
  extends Omit<RecordOf<typeof receiptFields>, 'state' | 'settledAtMs'>,
    RecordOf<typeof replyFields> {
  device: DeviceKey;
  mailId: Buffer;
  /** `delayed` until the mailbox accepts it, then `queued` until it ends. */
  state: 'delayed' | 'queued' | MailEnd;
  /** Only while delayed. */
  deliverAtMs: number | undefined;
  /** Only while queued. */
  expiresAtMs: number | undefined;
  settledAtMs: number | undefined;
}

export interface DeadLetterWithPayload extends RecordOf<typeof letterFields> {
  device: DeviceKey;
  mailId: Buffer;
  payloadBytes: number;
}

/** A mail that ended other than intended, without its payload. */
export type DeadLetter = Omit<DeadLetterWithPayload, 'payload'>;

/** Order of dead letters: by the time at which their mail was sent, which its id begins with. */
export type LetterOrder = 'oldest' | 'newest';

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
