import { createHash } from 'node:crypto';
import { ApiError } from '../core/errors.ts';
import { parseUuid, uuidTimeMs } from '../core/uuid.ts';
import type { RecordKind } from '../shard/shard.ts';

export interface IdempotencyLimits {
  idempotencyWindowSeconds: number;
  idempotencySkewSeconds: number;
}

function refused(msg: string): ApiError {
  return new ApiError('invalid_idempotency_key', { msg });
}

/**
 * D18: a UUIDv7 of 36 or 32 characters, in either case, quoted or not, made within the window.
 * @throws ApiError invalid_idempotency_key.
 */
export function parseIdempotencyKey(header: string, limits: IdempotencyLimits, nowMs: number): Buffer {
  const text =
    header.length > 2 && header.startsWith('"') && header.endsWith('"') ? header.slice(1, -1) : header;
  const key = parseUuid(text);
  if (key === undefined) throw refused('Idempotency-Key must be a UUIDv7 of 36 or 32 characters.');
  const ageMs = nowMs - uuidTimeMs(key);
  if (ageMs > limits.idempotencyWindowSeconds * 1_000)
    throw refused('The time of this Idempotency-Key is too old.');
  if (-ageMs > limits.idempotencySkewSeconds * 1_000)
    throw refused('The time of this Idempotency-Key is ahead.');
  return key;
}

/** What must be the same when a key comes again: route, schema and body. */
export function requestDigest(kind: RecordKind, schema: string, body: Buffer): Buffer {
  return createHash('sha256').update(`${kind}/${schema}\n`).update(body).digest();
}
