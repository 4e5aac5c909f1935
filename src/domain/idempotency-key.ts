import { createHash } from 'node:crypto';
import { ApiError } from '../core/errors.ts';
import { parseUuid } from '../core/uuid.ts';

/**
 * Parses a UUIDv7 of 36 or 32 characters, in either case, quoted or not (D18). The store checks its time, since only
 * there a repeated key is known.
 * @throws ApiError invalid_idempotency_key.
 */
export function parseIdempotencyKey(header: string): Buffer {
  const text =
    header.length > 2 && header.startsWith('"') && header.endsWith('"') ? header.slice(1, -1) : header;
  const key = parseUuid(text);
  if (key === undefined) {
    throw new ApiError('invalid_idempotency_key', {
      msg: 'Idempotency-Key must be a UUIDv7 of 36 or 32 characters.',
    });
  }
  return key;
}

/** Digest of what must be identical when a key repeats: the request (`datapoint/NAME`, say) and the body. */
export function requestDigest(request: string, body: Uint8Array): Buffer {
  return createHash('sha256').update(`${request}\n`).update(body).digest();
}

/** The answer to a refused key. */
export function keyRefused(reason: 'key_reused' | 'key_too_old' | 'key_ahead'): ApiError {
  if (reason === 'key_reused') return new ApiError('idempotency_key_reused');
  const wrong = reason === 'key_too_old' ? 'too old' : 'ahead';
  return new ApiError('invalid_idempotency_key', { msg: `The time of this Idempotency-Key is ${wrong}.` });
}
