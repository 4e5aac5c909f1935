import { emptyPayload, isEmpty, parseDatapoint, parseMessage } from '../../declarations/schemas/payload.ts';
import { keyRefused, parseIdempotencyKey, requestDigest } from '../../domain/idempotency-key.ts';
import type { Ingest, IngestKind, IngestOutcome } from '../../domain/records/record.ts';
import { parseRecordedAt } from '../../domain/records/recorded-at.ts';
import type { DeviceApiConfig } from '../config.ts';
import type { DeviceRequest, Endpoint } from '../server/endpoint.ts';
import { type Reply, replayed, storedReply } from '../server/reply.ts';

/** `POST /v1/msg/:schema_name`. The schema of an empty message must exist, but is not applied (section 2). */
export const sendMessage: Endpoint = {
  method: 'POST',
  path: '/v1/msg/:schema_name',
  takesBody: true,
  writes: true,
  handle: (request, context) =>
    send(request, 'message', context.config, () => {
      const { body, parameter } = request.input;
      const message = parseMessage(body);
      const schema = context.fleets.schema(request.fleetId, 'message', parameter);
      if (message === undefined) return emptyPayload;
      if (!isEmpty(message)) schema.check(message, body.length);
      return body;
    }),
};

/** `POST /v1/datapoint/:schema_name`. */
export const sendDatapoint: Endpoint = {
  method: 'POST',
  path: '/v1/datapoint/:schema_name',
  takesBody: true,
  writes: true,
  handle: (request, context) =>
    send(request, 'datapoint', context.config, () => {
      const { body, parameter } = request.input;
      const datapoint = parseDatapoint(body);
      context.fleets.schema(request.fleetId, 'datapoint', parameter).check(datapoint, body.length);
      return body;
    }),
};

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
 * Runs either send route from the body on: body (400), schema (404, 400), device time and idempotency key (400), then
 * store. `check` parses the body, validates it against its schema and returns the payload to store.
 */
export function send(
  request: DeviceRequest,
  kind: IngestKind,
  { settings }: Pick<DeviceApiConfig, 'settings'>,
  check: () => Buffer,
): Promise<Reply> {
  const { device, shard } = request;
  const { headers, parameter: schema } = request.input;
  const payload = check();
  const ingest: Ingest = { device, kind, schema, payload };
  let identity = `${kind}/${schema}`;
  if (headers.recordedAt !== undefined) {
    const { recordedAgeSecondsMax } = settings.current;
    ingest.recordedAtMs = parseRecordedAt(headers.recordedAt, Date.now(), recordedAgeSecondsMax);
    // No name has a space.
    identity += ` ${ingest.recordedAtMs}`;
  }
  if (headers.idempotencyKey !== undefined) {
    const key = parseIdempotencyKey(headers.idempotencyKey);
    ingest.idempotency = { key, digest: requestDigest(identity, payload) };
  }
  return shard.log.append(ingest).then(answer);
}
