import { mailDelaySecondsMax } from '../../core/bounds.ts';
import { ApiError } from '../../core/errors.ts';
import { keyRefused } from '../../domain/idempotency-key.ts';
import type { EnqueueOutcome } from '../../domain/mail/mail.ts';
import { parseTime } from './times.ts';

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
