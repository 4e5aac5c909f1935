import { createHash } from 'node:crypto';
import { ApiError } from '../core/errors.ts';
import { parseUuid } from '../core/uuid.ts';
import type { IngestKind } from '../shard/shard.ts';

/**
 * D18: a UUIDv7 of 36 or 32 characters, in either case, quoted or not. Whether its time is within the window
 * is for the shard to say: only there a repeated key is known.
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

/** What must be the same when a key comes again: route, schema and body. */
export function requestDigest(kind: IngestKind, schema: string, body: Buffer): Buffer {
  return createHash('sha256').update(`${kind}/${schema}\n`).update(body).digest();
}
