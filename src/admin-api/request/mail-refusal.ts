import { Type } from 'typebox';
import { mailDelaySecondsMax } from '../../core/bounds.ts';
import { ApiError } from '../../core/errors.ts';
import { keyRefused, parseIdempotencyKey, requestDigest } from '../../domain/idempotency-key.ts';
import type { EnqueueOutcome } from '../../domain/mail/mail.ts';
import { parseTime } from './times.ts';

/** For routes that take a sender's key, as devices have it (D18). */
export const idempotencyHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      description:
        'A UUIDv7 made within idempotencyWindowSeconds. The same request again is answered as before, with Idempotent-Replayed: true.',
    }),
  ),
});

/** What an answer that was given before carries. */
export const replayHeader = ['Idempotent-Replayed', 'true'] as const;

/**
 * The key of a request and the digest of all that must be the same when it comes again: `what` names what is asked
 * for, `options` how, in whatever order. Undefined without a key.
 * @throws ApiError invalid_idempotency_key.
 */
export function idempotencyOf(
  headers: { 'idempotency-key'?: string },
  what: string,
  options: object,
  body: Uint8Array,
): { key: Uint8Array; digest: Uint8Array } | undefined {
  const header = headers['idempotency-key'];
  if (header === undefined) return undefined;
  const given = JSON.stringify(Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1)));
  // Memory of their own: a view of Node's pool would cross threads with all of the pool around it.
  return {
    key: new Uint8Array(parseIdempotencyKey(header)),
    digest: new Uint8Array(requestDigest(`${what} ${given}`, body)),
  };
}

/** Those that a mail was sent under. */
export interface Limits {
  mailboxMailsMax: number;
  delayedMailsMax: number;
}

/** Why a mail was not taken, for its sender. */
export function refusal(
  { result }: Exclude<EnqueueOutcome, { result: 'queued' }>,
  { mailboxMailsMax, delayedMailsMax }: Limits,
): ApiError {
  switch (result) {
    case 'device_not_found':
      return new ApiError('device_not_found');
    case 'delayed_full':
      return new ApiError('limit_reached', {
        msg: `${delayedMailsMax} mails of this device wait for their time (delayedMailsPerDeviceMax).`,
      });
    case 'mailbox_full':
      return new ApiError('mailbox_full', {
        msg: `The mailbox holds ${mailboxMailsMax} mails or more (mailboxMailsMax).`,
      });
    default:
      return keyRefused(result);
  }
}

/** @throws ApiError bad_request. */
export function parseDeliverAt(text: string): number {
  const deliverAtMs = parseTime('deliver_at', text);
  if (deliverAtMs > Date.now() + mailDelaySecondsMax * 1_000) {
    throw new ApiError('bad_request', { msg: 'deliver_at is more than ten years ahead.' });
  }
  return deliverAtMs;
}
