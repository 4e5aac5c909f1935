import { type Static, Type } from 'typebox';
import { nullable, time } from '../../admin-api/request/documents.ts';
import { ApiError } from '../../core/errors.ts';
import { recordKinds } from '../../domain/records/record.ts';
import type { Destination, Forwarder, ForwarderFilter, NatsCredentials } from './declaration/forwarder.ts';
import { type ForwarderDraft, type ForwarderStatus, forwarderStates } from './service.ts';

/** The shapes of forwarders in the admin API, and how each is made of what the server has, and the other way. */
export const forwarderParameters = Type.Object({ fleet_id: Type.String(), name: Type.String() });

const type = Type.Enum(['webhook', 'nats']);
/** With its type: else every two of a filter would be compared. */
const kind = Type.Enum([...recordKinds], { type: 'string' });
const closed = { additionalProperties: false };

export const signingSecret = Type.String({
  maxLength: 200,
  description: 'Signs the batches of a webhook: whsec_ and 24 to 64 bytes in base64.',
});

/** Those that are never answered are `writeOnly`. */
const destinationMembers = {
  url: Type.String({ description: 'Of a webhook. It is shown: secrets belong into headers.' }),
  servers: Type.Array(Type.String(), { description: 'Of NATS: nats://HOST:PORT or tls://HOST:PORT.' }),
  subject: Type.String({
    description: 'Of NATS, with {fleet_id}, {device_id}, {kind} and {schema} of the record in it.',
  }),
  delivery: Type.Enum(['jetstream', 'at-most-once'], {
    description: 'Of NATS: acknowledged by a stream, or by nobody.',
  }),
};
const secretMembers = {
  secret: Type.Unsafe<string>({ ...signingSecret, writeOnly: true }),
  headers: Type.Unsafe<Record<string, string> | null>({
    type: ['object', 'null'],
    additionalProperties: { type: 'string' },
    writeOnly: true,
    description: 'Of a webhook: sent with every batch; null for none.',
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
    description:
      'Of NATS: a token, a user with a password, or the text of a credentials file; null for none.',
  }),
  tls: Type.Unsafe<{ ca?: string; cert?: string; key?: string } | null>({
    type: ['object', 'null'],
    properties: { ca: { type: 'string' }, cert: { type: 'string' }, key: { type: 'string' } },
    additionalProperties: false,
    writeOnly: true,
    description:
      'PEM: whom to trust besides nobody else, and a client certificate with its key; null for none.',
  }),
};
const filter = Type.Object(
  {
    kinds: Type.Optional(Type.Array(kind, { uniqueItems: true })),
    schemas: Type.Optional(Type.Array(Type.String())),
  },
  { ...closed, description: 'All that is given must hold.' },
);
const batchMembers = {
  batch_records_max: Type.Integer({
    minimum: 1,
    maximum: 1_000,
    description: 'Records of one batch. Default: 100.',
  }),
  linger_milliseconds: Type.Integer({
    minimum: 0,
    maximum: 60_000,
    description: 'Least time from one batch of a shard to the next, unless the first was full. Default: 0.',
  }),
  timeout_seconds: Type.Integer({ minimum: 1, maximum: 300, description: 'For one attempt. Default: 30.' }),
};

export const putForwarder = Type.Interface(
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
      Type.Enum(['now', 'beginning'], {
        description: 'Where a new one begins in the logs. Default: now.',
      }),
    ),
  },
  { ...closed, description: 'What is absent stays as it is.' },
);

export const forwarderDocument = Type.Object({
  name: Type.String(),
  type,
  ...Type.Partial(Type.Object(destinationMembers)).properties,
  filter,
  enabled: Type.Boolean(),
  ...batchMembers,
  headers: Type.Array(Type.String(), { description: 'Their names.' }),
  credentials: nullable('string', { description: 'Which ones it has: token, user or creds.' }),
  tls: Type.Array(Type.String(), { description: 'Which of ca, cert and key it has.' }),
  created_at: time,
  state: Type.Enum([...forwarderStates]),
  behind: Type.Integer({ description: 'Positions of the logs, of all fleets, that it has not come to.' }),
  lost: Type.Integer({ description: 'Positions that were trimmed from the logs before it came there.' }),
  dead_letters: Type.Integer(),
  delivered: Type.Integer({ description: 'Records since the server started; so are the next two.' }),
  failed: Type.Integer({ description: 'In attempts that are made again.' }),
  refused: Type.Integer({ description: 'That became dead letters.' }),
  dropped: Type.Integer({
    description: 'That were refused of devices with as many dead letters as they may have.',
  }),
  last_delivered_at: nullable('string'),
  last_error: Type.Union([Type.Object({ at: time, msg: Type.String() }), Type.Null()]),
});
export const forwarderPutAnswer = Type.Interface([forwarderDocument], {
  secret: nullable('string', { description: 'Only where it was made now; it is never shown again.' }),
});

export function forwarderDraftOf(
  body: Static<typeof putForwarder>,
  before: Forwarder | undefined,
): ForwarderDraft {
  const { headers, credentials, tls, secret } = body;
  return {
    settings: {
      destination: destinationOf(body, before?.destination),
      filter: (body.filter as ForwarderFilter | undefined) ?? before?.filter ?? {},
      enabled: body.enabled ?? before?.enabled ?? true,
      batchRecordsMax: body.batch_records_max ?? before?.batchRecordsMax ?? 100,
      lingerMilliseconds: body.linger_milliseconds ?? before?.lingerMilliseconds ?? 0,
      timeoutSeconds: body.timeout_seconds ?? before?.timeoutSeconds ?? 30,
    },
    secrets: {
      ...(secret !== undefined && { signing: secret }),
      ...(headers !== undefined && { headers: headersOf(headers ?? {}) }),
      ...(credentials !== undefined && { credentials: credentials && credentialsOf(credentials) }),
      ...(tls !== undefined && { tls: tls ?? {} }),
    },
    start: body.start === 'beginning' ? 'beginning' : 'now',
  };
}

function destinationOf(body: Static<typeof putForwarder>, before: Destination | undefined): Destination {
  if (body.type === 'webhook') {
    refuse(
      body.servers ?? body.subject ?? body.delivery,
      'A webhook has a url, and no servers, subject or delivery.',
    );
    const url = body.url ?? (before?.type === 'webhook' ? before.url : undefined);
    return { type: 'webhook', url: url ?? '' };
  }
  refuse(body.url, 'NATS has servers and a subject, and no url.');
  const known = before?.type === 'nats' ? before : undefined;
  return {
    type: 'nats',
    servers: body.servers ?? known?.servers ?? [],
    subject: body.subject ?? known?.subject ?? 'fleet.{fleet_id}.{kind}.{schema}',
    delivery: (body.delivery as 'jetstream' | undefined) ?? known?.delivery ?? 'jetstream',
  };
}

function refuse(given: unknown, msg: string): void {
  if (given !== undefined) throw new ApiError('invalid_forwarder', { msg });
}

function headersOf(headers: Record<string, string>): [string, string][] {
  return Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
}

function credentialsOf(given: {
  token?: string;
  user?: string;
  password?: string;
  creds?: string;
}): NatsCredentials {
  const { token, user, password, creds } = given;
  const count = Object.keys(given).length;
  if (token !== undefined && count === 1) return { token };
  if (creds !== undefined && count === 1) return { creds };
  if (user !== undefined && password !== undefined && count === 2) return { user, password };
  throw new ApiError('invalid_forwarder', {
    msg: 'Credentials are a token, or a user with a password, or creds.',
  });
}

export function describeForwarder(status: ForwarderStatus): Static<typeof forwarderDocument> {
  const { forwarder, counts, lastError, lastDeliveredAtMs } = status;
  const { secrets, destination, filter } = forwarder;
  return {
    name: forwarder.name,
    ...(destination.type === 'webhook' ? destination : { ...destination, servers: [...destination.servers] }),
    filter: filter as Static<typeof forwarderDocument>['filter'],
    enabled: forwarder.enabled,
    batch_records_max: forwarder.batchRecordsMax,
    linger_milliseconds: forwarder.lingerMilliseconds,
    timeout_seconds: forwarder.timeoutSeconds,
    headers: secrets.headers.map(([name]) => name),
    credentials: Object.keys(secrets.credentials ?? {})[0] ?? null,
    tls: Object.keys(secrets.tls),
    created_at: isoTime(forwarder.createdAtMs),
    state: status.state,
    behind: status.behind,
    lost: status.lost,
    dead_letters: status.deadLetters,
    delivered: counts.delivered,
    failed: counts.failed,
    refused: counts.dead,
    dropped: counts.dropped,
    last_delivered_at: lastDeliveredAtMs === undefined ? null : isoTime(lastDeliveredAtMs),
    last_error: lastError === undefined ? null : { at: isoTime(lastError.atMs), msg: lastError.msg },
  };
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
