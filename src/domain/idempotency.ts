import { uuidTimeMs } from '../core/uuid.ts';

/** Why an idempotency key is not taken (D18). */
export type KeyRefusal = 'key_reused' | 'key_too_old' | 'key_ahead';

/** Of the digest that is kept with a key: SHA-256. */
export const keyDigestBytes = 32;
/** What the keys of those who send a device mail are told from its own by, behind the device. */
export const senderMark = 's';

export interface IdempotencyLimits {
  idempotencyWindowSeconds: number;
  idempotencySkewSeconds: number;
}

/**
 * Whether an idempotency key that is not known may be taken (D18): it must be of the time, and later than all that
 * were forgotten. A clock that is set back would else let in for a second time what was stored before.
 */
export function keyRefusal(
  key: Uint8Array,
  nowMs: number,
  forgottenMs: number,
  limits: IdempotencyLimits,
): KeyRefusal | undefined {
  const timeMs = uuidTimeMs(key);
  if (timeMs < nowMs - limits.idempotencyWindowSeconds * 1_000 || timeMs <= forgottenMs) return 'key_too_old';
  if (timeMs > nowMs + limits.idempotencySkewSeconds * 1_000) return 'key_ahead';
  return undefined;
}
