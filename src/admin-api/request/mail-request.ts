import { mailDelaySecondsMax } from '../../core/bounds.ts';
import { ApiError } from '../../core/errors.ts';
import { keyRefused, parseIdempotencyKey, requestDigest } from '../../domain/idempotency-key.ts';
import type { EnqueueOutcome } from '../../domain/mail/mail.ts';
import { parseTime } from './times.ts';

/** Header of the answer to a repeated request. */
export const replayHeader = ['Idempotent-Replayed', 'true'] as const;

/**
 * Returns the key of a request and the digest of all that must be equal when it is repeated: the operation `what`, its
 * `options` in any order, and the body. Undefined without a key.
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
  const sorted = JSON.stringify(Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1)));
  // Copied: a view of Node's pool would cross threads together with the whole pool.
  return {
    key: new Uint8Array(parseIdempotencyKey(header)),
    digest: new Uint8Array(requestDigest(`${what} ${sorted}`, body)),
  };
}

/** Effective limits of one mail. */
export interface Limits {
  mailboxMailsMax: number;
  delayedMailsMax: number;
}

/** Converts a refused mail to the error for its sender. */
export function refusal(
  { result }: Exclude<EnqueueOutcome, { result: 'queued' }>,
  { mailboxMailsMax, delayedMailsMax }: Limits,
): ApiError {
  switch (result) {
    case 'device_not_found':
      return new ApiError('device_not_found');
    case 'delayed_full':
      return new ApiError('limit_reached', {
        msg: `This device has ${delayedMailsMax} delayed mails or more (delayedMailsPerDeviceMax).`,
      });
    case 'mailbox_full':
      return new ApiError('mailbox_full', {
        msg: `The mailbox holds ${mailboxMailsMax} mails or more (mailboxMailsMax).`,
      });
    case 'fleet_mail_full':
      return new ApiError('fleet_mail_full', {
        msg: 'The mail of this fleet that waits has as many bytes as it may (mailBytesPerFleetMax, mail_bytes_max).',
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
