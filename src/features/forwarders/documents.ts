import { type Static, Type } from 'typebox';
import { nullable, time } from '../../admin-api/request/documents.ts';
import { ApiError } from '../../core/errors.ts';
import { recordKinds } from '../../domain/records/record.ts';
import type { Destination, Forwarder, ForwarderFilter, NatsCredentials } from './declaration/forwarder.ts';
import { type ForwarderDraft, type ForwarderStatus, forwarderStates } from './service.ts';

/** Documents of forwarders in the admin API, and their conversion from and to what the server has. */
export const forwarderParameters = Type.Object({ fleet_id: Type.String(), name: Type.String() });

const type = Type.Enum(['webhook', 'nats']);
/** States its type: otherwise uniqueItems would compare each pair. */
const kind = Type.Enum([...recordKinds], { type: 'string' });
const closed = { additionalProperties: false };

export const signingSecret = Type.String({
  maxLength: 200,
  description: 'Webhook: signing key, whsec_ and 24 to 64 bytes in base64.',
});

/** Secrets are `writeOnly`: no response has them. */
const destinationMembers = {
  url: Type.String({ description: 'Webhook: where to POST. Visible to readers: put secrets into headers.' }),
  servers: Type.Array(Type.String(), { description: 'NATS: nats://HOST:PORT or tls://HOST:PORT.' }),
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
const filter = Type.Object(
  {
    kinds: Type.Optional(Type.Array(kind, { uniqueItems: true })),
    schemas: Type.Optional(Type.Array(Type.String())),
  },
  { ...closed, description: 'Records must match all members.' },
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
      Type.Enum(['earliest', 'latest'], {
        description: 'Where a new forwarder begins in the logs. Default: latest.',
      }),
    ),
  },
  { ...closed, description: 'Absent members stay as they are.' },
);

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
  state: Type.Enum([...forwarderStates]),
  behind: Type.Integer({ description: 'Positions of the logs, of all fleets, not forwarded yet.' }),
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
  last_error: Type.Union([Type.Object({ at: time, msg: Type.String() }), Type.Null()]),
});
export const forwarderPutAnswer = Type.Interface([forwarderDocument], {
  secret: nullable('string', { description: 'Only when generated by this request; never shown again.' }),
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
    start: body.start === 'earliest' ? 'earliest' : 'latest',
  };
}

function destinationOf(body: Static<typeof putForwarder>, before: Destination | undefined): Destination {
  if (body.type === 'webhook') {
    refuse(
      body.servers ?? body.subject ?? body.delivery,
      'A webhook has a url, but no servers, subject or delivery.',
    );
    const url = body.url ?? (before?.type === 'webhook' ? before.url : undefined);
    return { type: 'webhook', url: url ?? '' };
  }
  refuse(body.url, 'A forwarder to NATS has servers and a subject, but no url.');
  const known = before?.type === 'nats' ? before : undefined;
  return {
    type: 'nats',
    servers: body.servers ?? known?.servers ?? [],
    subject: body.subject ?? known?.subject ?? 'fleet.{fleet_id}.{kind}.{schema}',
    delivery: (body.delivery as 'jetstream' | undefined) ?? known?.delivery ?? 'jetstream',
  };
}

function refuse(value: unknown, msg: string): void {
  if (value !== undefined) throw new ApiError('invalid_forwarder', { msg });
}

function headersOf(headers: Record<string, string>): [string, string][] {
  return Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
}

function credentialsOf(input: {
  token?: string;
  user?: string;
  password?: string;
  creds?: string;
}): NatsCredentials {
  const { token, user, password, creds } = input;
  const count = Object.keys(input).length;
  if (token !== undefined && count === 1) return { token };
  if (creds !== undefined && count === 1) return { creds };
  if (user !== undefined && password !== undefined && count === 2) return { user, password };
  throw new ApiError('invalid_forwarder', {
    msg: 'Credentials must be a token, a user with a password, or creds.',
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
