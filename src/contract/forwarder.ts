import { type Static, Type } from 'typebox';
import { deadLettersOf } from './dead-letter.ts';
import { closedObject, listOf, nullable, pauseBody, time } from './document.ts';
import { recordHeadDocument, recordKind } from './record.ts';
import { declareRoutes, noDocument } from './routes/route.ts';

const type = Type.Enum(['webhook', 'nats']);

const signingSecret = Type.String({
  maxLength: 200,
  description: 'Webhook: signing key, whsec_ and 24 to 64 bytes in base64.',
});

/** Secrets are `writeOnly`: no response has them. */
const destinationMembers = {
  url: Type.String({ description: 'Webhook: where to POST. Visible to readers: put secrets into headers.' }),
  servers: Type.Unsafe<readonly string[]>(
    Type.Array(Type.String(), { description: 'NATS: nats://HOST:PORT or tls://HOST:PORT.' }),
  ),
  subject: Type.String({
    description: 'NATS: subject template with {fleet_id}, {device_id}, {kind} and {schema} of the record.',
  }),
  delivery: Type.Enum(['jetstream', 'at-most-once'], {
    description: 'NATS: acknowledged by a JetStream stream, or not at all.',
  }),
};
const secretMembers = {
  secret: Type.Unsafe<string>({ ...signingSecret, writeOnly: true }),
  headers: Type.Unsafe<Record<string, string> | null>({
    type: ['object', 'null'],
    additionalProperties: { type: 'string' },
    writeOnly: true,
    description: 'Webhook: headers of every request; null for none.',
  }),
  credentials: Type.Unsafe<{ token?: string; user?: string; password?: string; creds?: string } | null>({
    type: ['object', 'null'],
    properties: {
      token: { type: 'string' },
      user: { type: 'string' },
      password: { type: 'string' },
      creds: { type: 'string' },
    },
    additionalProperties: false,
    writeOnly: true,
    description: 'NATS: a token, a user with a password, or the text of a credentials file; null for none.',
  }),
  tls: Type.Unsafe<{ ca?: string; cert?: string; key?: string } | null>({
    type: ['object', 'null'],
    properties: { ca: { type: 'string' }, cert: { type: 'string' }, key: { type: 'string' } },
    additionalProperties: false,
    writeOnly: true,
    description:
      'PEM: certificates to trust instead of the usual ones, and a client certificate with its key; null for none.',
  }),
};
const filter = closedObject(
  {
    // States its type: otherwise uniqueItems would compare each pair.
    kinds: Type.Optional(Type.Array(Type.Enum(recordKind.enum, { type: 'string' }), { uniqueItems: true })),
    schemas: Type.Optional(Type.Array(Type.String())),
  },
  { description: 'Records must match all members.' },
);
const batchMembers = {
  batch_records_max: Type.Integer({
    minimum: 1,
    maximum: 1_000,
    description: 'Maximum records per batch. Default: 100.',
  }),
  linger_milliseconds: Type.Integer({
    minimum: 0,
    maximum: 60_000,
    description: 'Minimum time between two batches of a shard, unless the first was full. Default: 0.',
  }),
  timeout_seconds: Type.Integer({
    minimum: 1,
    maximum: 300,
    description: 'Timeout of one attempt. Default: 30.',
  }),
};

const forwarderBody = Type.Interface(
  [
    Type.Partial(
      Type.Object({
        ...destinationMembers,
        ...secretMembers,
        ...batchMembers,
        filter,
        enabled: Type.Boolean(),
      }),
    ),
  ],
  {
    type,
    start: Type.Optional(
      Type.Enum(['earliest', 'latest'], {
        description: 'Where a new forwarder begins in the logs. Default: latest.',
      }),
    ),
  },
  { additionalProperties: false, description: 'Absent members stay as they are.' },
);
export type ForwarderBody = Static<typeof forwarderBody>;

export const forwarderDocument = Type.Object({
  name: Type.String(),
  type,
  ...Type.Partial(Type.Object(destinationMembers)).properties,
  filter,
  enabled: Type.Boolean(),
  ...batchMembers,
  headers: Type.Array(Type.String(), { description: 'Names of the headers.' }),
  credentials: nullable('string', { description: 'Type of the credentials: token, user or creds.' }),
  tls: Type.Array(Type.String(), { description: 'Which of ca, cert and key are set.' }),
  created_at: time,
  secret_since: nullable('string', {
    description: 'Webhook: when its signing secret was set; null if that was before it was noted.',
  }),
  old_secret_until: nullable('string', {
    description: 'Webhook: until when the secret before signs too, while it does.',
  }),
  state: Type.Enum(['running', 'backing_off', 'dead_letters_full', 'held', 'paused']),
  behind: Type.Integer({ description: 'Positions of the logs, of all fleets, not forwarded yet.' }),
  seconds_behind: Type.Number({ description: 'Age of the oldest record among them.' }),
  lost: Type.Integer({ description: 'Positions trimmed by retention before the forwarder read them.' }),
  dead_letters: Type.Integer(),
  delivered: Type.Integer({ description: 'Records delivered since the server started.' }),
  failed: Type.Integer({
    description: 'Records in failed attempts since the server started; these are retried.',
  }),
  refused: Type.Integer({ description: 'Records that became dead letters since the server started.' }),
  dropped: Type.Integer({
    description: 'Refused records since the server started, of devices that may have no more dead letters.',
  }),
  last_delivered_at: nullable('string'),
  last_error: Type.Union([
    Type.Object({
      at: time,
      msg: Type.String(),
      recovered_at: nullable('string', { description: 'When a batch was first accepted after it.' }),
    }),
    Type.Null(),
  ]),
  next_attempt_at: nullable('string', { description: 'When the next retry is due, in backoff.' }),
});
export type ForwarderDocument = Static<typeof forwarderDocument>;
const declaredForwarderDocument = Type.Interface([forwarderDocument], {
  secret: nullable('string', { description: 'Only when generated by this request; never shown again.' }),
  warning: nullable('string', { description: 'Why the destination takes no connections now.' }),
});

const minutes = (description: string) => Type.Array(Type.Integer(), { description });
const forwarderHourDocument = Type.Object({
  time,
  from: Type.String({ description: 'When the first minute began: an hour ago, or when it started here.' }),
  delivered: minutes('Records delivered, by minute; the last one is not over.'),
  failed: minutes('Likewise, records in failed attempts, which are retried.'),
  refused: minutes('Likewise, records that the destination refused for good.'),
});
export type ForwarderHourDocument = Static<typeof forwarderHourDocument>;

/** Result of a test event. */
const forwarderTrialDocument = Type.Object({
  result: Type.Enum(['delivered', 'refused', 'failed']),
  msg: nullable('string', { description: 'Why it was not delivered.' }),
  milliseconds: Type.Integer(),
});
export type ForwarderTrialDocument = Static<typeof forwarderTrialDocument>;

const secretRotationBody = closedObject({
  secret: Type.Optional(signingSecret),
  grace_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 2_592_000,
      description: 'How long the previous secret is used too. Default: one day.',
    }),
  ),
});
const signingSecretDocument = Type.Object({ secret: signingSecret });

/** A record that the destination refused. */
const refusedRecordDocument = Type.Interface([recordHeadDocument], {
  failed_at: time,
  reason: Type.String(),
  replayed: Type.Boolean({ description: 'Whether it is queued to be sent again.' }),
});
export type RefusedRecordDocument = Static<typeof refusedRecordDocument>;
const shownRefusedRecordDocument = Type.Interface([refusedRecordDocument], {
  payload: Type.Object({}, { description: 'As it was sent.' }),
});

const deadLetters = deadLettersOf({
  of: 'a forwarder',
  scope: 'provision',
  documents: { listed: refusedRecordDocument, shown: shownRefusedRecordDocument },
  params: {},
  after: Type.String({ maxLength: 36 }),
  // Each is read with its payload.
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 100 }),
  texts: {
    listing: 'Oldest record first, without payloads.',
    replayingAll: 'Sends them again after what was sent since. Each stays until the destination accepts it.',
  },
});

/**
 * `/fleets/{fleet_id}/forwarders`, each forwarder by name, and its dead letters. A forwarder makes the server send a
 * fleet's records to any host: the scope for declaring devices is too low.
 */
export const forwarderRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/forwarders': {
    scope: 'read',
    summary: 'List forwarders',
    answers: { 200: listOf(forwarderDocument) },
  },
  'PUT /fleets/{fleet_id}/forwarders/{name}': {
    scope: 'admin',
    summary: 'Create or change a forwarder',
    description: 'Forwards the records of the fleet at least once, in order per device.',
    body: forwarderBody,
    answers: { 200: declaredForwarderDocument, 201: declaredForwarderDocument },
  },
  'GET /fleets/{fleet_id}/forwarders/{name}': {
    scope: 'read',
    summary: 'Show a forwarder',
    answers: { 200: forwarderDocument },
  },
  'GET /fleets/{fleet_id}/forwarders/{name}/hour': {
    scope: 'read',
    summary: 'Show the last hour of a forwarder',
    description: 'In memory of the node that runs it, so from its start there on.',
    answers: { 200: forwarderHourDocument },
  },
  'PATCH /fleets/{fleet_id}/forwarders/{name}': {
    scope: 'admin',
    summary: 'Pause or resume a forwarder',
    description:
      'A paused forwarder keeps its cursors: records stored meanwhile are sent once it is resumed.',
    body: pauseBody,
    answers: { 200: forwarderDocument },
  },
  'DELETE /fleets/{fleet_id}/forwarders/{name}': {
    scope: 'admin',
    summary: 'Delete a forwarder',
    description: 'Deletes its cursors and dead letters too.',
    answers: { 204: noDocument },
  },
  'POST /fleets/{fleet_id}/forwarders/{name}/test': {
    scope: 'admin',
    summary: 'Test a forwarder',
    description:
      'Sends one test event, a message of schema fleetpost-test and device 0000000000 that is in no log, and answers what came of it. Waits up to timeout_seconds.',
    answers: { 200: forwarderTrialDocument },
    hasOwnLimit: true,
  },
  'POST /fleets/{fleet_id}/forwarders/{name}/rotate-secret': {
    scope: 'admin',
    summary: 'Rotate the signing secret of a webhook',
    description: 'Signs batches with the new secret and, for `grace_seconds`, with the previous one too.',
    body: secretRotationBody,
    answers: { 200: signingSecretDocument },
  },
  'GET /fleets/{fleet_id}/forwarders/{name}/dead-letters': deadLetters.list,
  'GET /fleets/{fleet_id}/forwarders/{name}/dead-letters/{record_id}': deadLetters.show,
  'POST /fleets/{fleet_id}/forwarders/{name}/dead-letters/{record_id}/replay': deadLetters.replay,
  'DELETE /fleets/{fleet_id}/forwarders/{name}/dead-letters/{record_id}': deadLetters.drop,
  'POST /fleets/{fleet_id}/forwarders/{name}/dead-letters/replay': deadLetters.replayAll,
  'DELETE /fleets/{fleet_id}/forwarders/{name}/dead-letters': deadLetters.dropAll,
});
