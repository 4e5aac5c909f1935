import { type Static, Type } from 'typebox';
import { fleetBounds } from '../core/bounds.ts';
import { deviceId, nullable, time } from './document.ts';

/** Settings of a mail, instead of those of its fleet. */
export const mailSettings = {
  ttl_seconds: Type.Optional(Type.Integer(fleetBounds.mail_ttl_seconds)),
  mailbox_mails_max: Type.Optional(Type.Integer(fleetBounds.mailbox_mails_max)),
  requeues_max: Type.Optional(Type.Integer(fleetBounds.mail_requeues_max)),
};

/** Headers of routes that take an idempotency key (D18). */
export const idempotencyHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      description:
        'A UUIDv7 generated within idempotencyWindowSeconds. A repeated request is answered as before, with Idempotent-Replayed: true.',
    }),
  ),
});

export const waitingMailDocument = Type.Object({
  mail_id: Type.String(),
  name: Type.String(),
  payload: Type.Object({}),
  deliver_at: nullable('string', { description: 'Only of delayed mail.' }),
  accepted_at: nullable('string', { description: 'Only of queued mail, as is `expires_at`.' }),
  expires_at: nullable('string'),
  fetch_count: Type.Integer(),
  first_fetched_at: nullable('string'),
  requeue_count: Type.Integer(),
});
export type WaitingMailDocument = Static<typeof waitingMailDocument>;

export const sentMailDocument = Type.Object({
  mail_id: Type.String(),
  mailbox_size: Type.Integer(),
  state: Type.Enum(['queued', 'delayed']),
});
export type SentMailDocument = Static<typeof sentMailDocument>;

/** States of a mail, as its receipt tells them. */
export const mailStates = [
  'delayed',
  'queued',
  'acked',
  'rejected',
  'expired',
  'withdrawn',
  'over_requeued',
  'mailbox_full',
] as const;

export const receiptDocument = Type.Object({
  mail_id: Type.String(),
  device_id: deviceId,
  name: Type.String(),
  state: Type.Enum([...mailStates]),
  deliver_at: nullable('string', { description: 'Only of delayed mail.' }),
  queued_at: nullable('string', { description: 'When the mailbox accepted it.' }),
  expires_at: nullable('string', { description: 'Only of queued mail.' }),
  fetch_count: Type.Integer(),
  first_fetched_at: nullable('string'),
  requeue_count: Type.Integer(),
  settled_at: nullable('string', { description: 'When it was settled, expired or withdrawn.' }),
});
export type ReceiptDocument = Static<typeof receiptDocument>;

export const withdrawalDocument = Type.Object({
  mail_id: Type.String(),
  mailbox_size: Type.Integer(),
  withdrawn_at: time,
});
export type WithdrawalDocument = Static<typeof withdrawalDocument>;
