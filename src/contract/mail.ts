import { type Static, Type } from 'typebox';
import { fleetBounds, waitSecondsMax } from '../core/bounds.ts';
import { replaceKeyPattern } from '../core/identity.ts';
import { bytesBody, deviceId, listOf, nullable, pageLimit, time, wordOf } from './document.ts';
import { declareRoutes } from './routes/route.ts';

/** Settings of a mail, some of them instead of those of its fleet. */
export const mailSettings = {
  ttl_seconds: Type.Optional(Type.Integer(fleetBounds.mail_ttl_seconds)),
  mailbox_mails_max: Type.Optional(Type.Integer(fleetBounds.mailbox_mails_max)),
  requeues_max: Type.Optional(Type.Integer(fleetBounds.mail_requeues_max)),
  replace_key: Type.Optional(
    Type.String({
      pattern: replaceKeyPattern.source,
      description: 'The mail takes the place of the one of this key that waits and was never fetched.',
    }),
  ),
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

/** Sent as it was stored: numbers beyond 2^53 would not survive parsing. */
export const payloadBody = Type.Unsafe<unknown>({
  type: 'object',
  description: 'Byte for byte as it was sent.',
});

const waitingMailDocument = Type.Object({
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

const sentMailDocument = Type.Object({
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
  'replaced',
  'over_requeued',
  'mailbox_full',
] as const;

const receiptDocument = Type.Object({
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
  settled_at: nullable('string', { description: 'When it was settled, expired, withdrawn or replaced.' }),
  reply: Type.Unsafe<Record<string, unknown> | null>({
    type: ['object', 'null'],
    description: 'What the device answered with its settlement, byte for byte.',
  }),
});
export type ReceiptDocument = Static<typeof receiptDocument>;

const withdrawalDocument = Type.Object({
  mail_id: Type.String(),
  mailbox_size: Type.Integer(),
  withdrawn_at: time,
});

/** `…/devices/{device_id}/mail`: sending a mail, and listing the mailbox. */
export const mailRoutes = declareRoutes({
  'POST /fleets/{fleet_id}/devices/{device_id}/mail/{name}': {
    scope: 'mail',
    summary: 'Send a mail to a device',
    headers: idempotencyHeaders,
    query: Type.Object({
      ...mailSettings,
      deliver_at: Type.Optional(
        Type.String({ description: 'When the mailbox accepts it: ISO 8601 with a time zone.' }),
      ),
      wait: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: waitSecondsMax,
          description:
            'Seconds to wait until the mail is settled, or ends otherwise: then the answer is its receipt, with 200.',
        }),
      ),
    }),
    body: bytesBody('The payload, a JSON object, delivered byte for byte. An empty body is {}.'),
    answers: { 200: receiptDocument, 201: sentMailDocument },
    book: 'traffic',
    // Many senders wait for a shard, within shardQueueMax.
    hasOwnLimit: true,
    bodyLimitKey: 'bodyBytesMax',
  },
  'GET /fleets/{fleet_id}/devices/{device_id}/mail': {
    scope: 'read',
    summary: 'List the queued or the delayed mail of a device',
    description:
      'Lists queued mail in the order of the mailbox, head first, or delayed mail in the order of delivery; each with its payload. A page of queued mail ends after 1 MB of payloads: go on with `next`.',
    query: Type.Object({
      state: wordOf(['queued', 'delayed'], { default: 'queued' }),
      after: Type.String({ default: '' }),
      limit: pageLimit,
    }),
    answers: { 200: listOf(waitingMailDocument) },
  },
});

/** `…/devices/{device_id}/mail/{mail_id}`: the receipt of a mail (D17), its payload, and withdrawing it. */
export const receiptRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/devices/{device_id}/mail/{mail_id}': {
    scope: 'read',
    summary: 'Show the receipt of a mail',
    description:
      'Shows the receipt of a mail, also of a deleted device, until receiptRetentionSeconds after its end. Fetches are written every few seconds; at once, as far as devices call this node, for 15 seconds after a receipt of a queued mail or the mailbox was read, or while a stream of records of this device alone is open, for 256 devices at most.',
    answers: { 200: receiptDocument },
  },
  'GET /fleets/{fleet_id}/devices/{device_id}/mail/{mail_id}/payload': {
    scope: 'read',
    summary: 'Show the payload of a mail',
    description:
      'Answers the payload of a mail as the body: while it is queued or delayed, or a dead letter.',
    answers: { 200: payloadBody },
  },
  'DELETE /fleets/{fleet_id}/devices/{device_id}/mail/{mail_id}': {
    scope: 'mail',
    summary: 'Withdraw a mail',
    description: 'Withdraws a mail that is queued in its mailbox or delayed.',
    answers: { 200: withdrawalDocument },
  },
});
