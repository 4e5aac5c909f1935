import type { Settings } from '../core/config/settings.ts';
import { uuidTimeMs } from '../core/uuid.ts';

/** Why an idempotency key is refused (D18). */
export type KeyRefusal = 'key_reused' | 'key_too_old' | 'key_ahead';

/** Length of the SHA-256 digest stored with a key. */
export const keyDigestBytes = 32;
/** Separates the keys of a device's mail senders from the device's own; follows the device in the key. */
export const senderMark = 's';

export interface IdempotencyLimits {
  idempotencyWindowSeconds: number;
  settings: Settings<{ idempotencySkewSeconds: number }>;
}

/**
 * Checks an unknown idempotency key (D18): its time must be within the window, and later than all forgotten keys.
 * Otherwise, after a clock was set back, a request could be stored twice.
 */
export function keyRefusal(
  key: Uint8Array,
  nowMs: number,
  forgottenMs: number,
  limits: IdempotencyLimits,
): KeyRefusal | undefined {
  const timeMs = uuidTimeMs(key);
  if (timeMs < nowMs - limits.idempotencyWindowSeconds * 1_000 || timeMs <= forgottenMs) return 'key_too_old';
  if (timeMs > nowMs + limits.settings.current.idempotencySkewSeconds * 1_000) return 'key_ahead';
  return undefined;
}
