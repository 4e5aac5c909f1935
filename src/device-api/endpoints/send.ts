import { keyRefused, parseIdempotencyKey, requestDigest } from '../../domain/idempotency-key.ts';
import type { Ingest, IngestKind, IngestOutcome } from '../../domain/records/record.ts';
import type { DeviceRequest } from '../server/endpoint.ts';
import { type Reply, replayed, storedReply } from '../server/reply.ts';

function answer(outcome: IngestOutcome): Reply {
  switch (outcome) {
    case 'stored':
      return storedReply;
    case 'replayed':
      return replayed;
    default:
      throw keyRefused(outcome);
  }
}

/**
 * The two send routes from the body on: body (400), schema (404, 400), idempotency key (400), then store.
 * `check` parses the body, holds it against its schema and answers the payload to keep.
 */
export function send(request: DeviceRequest, kind: IngestKind, check: () => Buffer): Promise<Reply> {
  const { device, shard } = request;
  const { headers, parameter: schema } = request.given;
  const payload = check();
  const ingest: Ingest = { device, kind, schema, payload };
  if (headers.idempotencyKey !== undefined) {
    const key = parseIdempotencyKey(headers.idempotencyKey);
    ingest.idempotency = { key, digest: requestDigest(`${kind}/${schema}`, payload) };
  }
  return shard.ingest(ingest).then(answer);
}
