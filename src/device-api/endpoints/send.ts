import { parseJson } from '../../declarations/schemas/payload.ts';
import { keyRefused, parseIdempotencyKey, requestDigest } from '../../domain/idempotency-key.ts';
import type { Ingest, IngestKind, IngestOutcome } from '../../domain/records/record.ts';
import { parseRecordedAt } from '../../domain/records/recorded-at.ts';
import type { HttpContext } from '../server/context.ts';
import type { DeviceRequest, Endpoint } from '../server/endpoint.ts';
import { type Reply, replayed, storedReply } from '../server/reply.ts';
import { checkedPayload } from './checked-payload.ts';

/** `POST /v1/msg/:schema_name`. */
export const sendMessage = send('message', '/v1/msg/:schema_name');

/** `POST /v1/datapoint/:schema_name`. */
export const sendDatapoint = send('datapoint', '/v1/datapoint/:schema_name');

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

/** Checks body (400), schema (404, 400), device time and idempotency key (400), then stores. */
function send(kind: IngestKind, path: string): Endpoint {
  return {
    method: 'POST',
    path,
    takesBody: true,
    writes: true,
    handle(
      { device, fleetId, shard, input }: DeviceRequest,
      { fleets, config }: HttpContext,
    ): Promise<Reply> {
      const { headers, parameter: schema, body } = input;
      const value =
        kind === 'message' && body.length === 0 ? undefined : fleets.parse(fleetId, body, parseJson);
      const payload = checkedPayload({ kind, schema, value, bytes: body }, fleetId, fleets);
      const ingest: Ingest = { device, kind, schema, payload };
      let identity = `${kind}/${schema}`;
      if (headers.recordedAt !== undefined) {
        const { recordedAgeSecondsMax } = config.settings.current;
        ingest.recordedAtMs = parseRecordedAt(headers.recordedAt, Date.now(), recordedAgeSecondsMax);
        // No name has a space.
        identity += ` ${ingest.recordedAtMs}`;
      }
      if (headers.idempotencyKey !== undefined) {
        const key = parseIdempotencyKey(headers.idempotencyKey);
        ingest.idempotency = { key, digest: requestDigest(identity, payload) };
      }
      return shard.log.append(ingest).then(answer);
    },
  };
}
