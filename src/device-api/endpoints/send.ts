import { emptyPayload, isEmpty, parseDatapoint, parseMessage } from '../../declarations/schemas/payload.ts';
import { keyRefused, parseIdempotencyKey, requestDigest } from '../../domain/idempotency-key.ts';
import type { Ingest, IngestKind, IngestOutcome } from '../../domain/records/record.ts';
import type { DeviceRequest, Endpoint } from '../server/endpoint.ts';
import { type Reply, replayed, storedReply } from '../server/reply.ts';

/** `POST /v1/msg/:schema_name`. The schema of an empty message must exist, but is not applied (section 2). */
export const sendMessage: Endpoint = {
  method: 'POST',
  path: '/v1/msg/:schema_name',
  takesBody: true,
  writes: true,
  handle: (request, context) =>
    send(request, 'message', () => {
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
    send(request, 'datapoint', () => {
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
 * Runs either send route from the body on: body (400), schema (404, 400), idempotency key (400), then store. `check`
 * parses the body, validates it against its schema and returns the payload to store.
 */
export function send(request: DeviceRequest, kind: IngestKind, check: () => Buffer): Promise<Reply> {
  const { device, shard } = request;
  const { headers, parameter: schema } = request.input;
  const payload = check();
  const ingest: Ingest = { device, kind, schema, payload };
  if (headers.idempotencyKey !== undefined) {
    const key = parseIdempotencyKey(headers.idempotencyKey);
    ingest.idempotency = { key, digest: requestDigest(`${kind}/${schema}`, payload) };
  }
  return shard.log.append(ingest).then(answer);
}
