import { type Static, Type } from 'typebox';
import type { AdminApp, AdminContext, Handler } from '../../admin-api/request/context.ts';
import { errorAnswers, fleetPath, listOf, nullable, time } from '../../admin-api/request/documents.ts';
import { parseTime, timeText } from '../../admin-api/request/times.ts';
import { ApiError } from '../../core/errors.ts';
import { type RecordKind, recordKinds } from '../../domain/records/record.ts';
import type { ConsumerSettings, ConsumerStart } from '../records/consumer.ts';
import { recordDocument } from '../records/record-line.ts';
import { type ConsumerBatch, type ConsumerStatus, consumerNamePattern } from './service.ts';

const consumerPath = Type.Interface([fleetPath], { name: Type.String() });
const filter = {
  kinds: Type.Array(Type.Enum([...recordKinds]), {
    maxItems: recordKinds.length,
    description: 'Kinds of records to read; empty for all.',
  }),
  schemas: Type.Array(Type.String({ maxLength: 255 }), {
    maxItems: 1_000,
    description: 'Schemas of records to read; empty for all.',
  }),
};
const settings = Type.Partial(
  Type.Object({
    ...filter,
    lease_seconds: nullable('integer', {
      minimum: 1,
      maximum: 3_600,
      description: 'Lease of a batch; null for 30 seconds.',
    }),
    start: Type.Union(
      [Type.Enum(['earliest', 'latest']), timeText('At the first record stored then or later.')],
      {
        description: 'Where a new consumer begins. Default: `earliest`. Ignored for an existing one.',
      },
    ),
  }),
  { additionalProperties: false },
);
const shardDocument = Type.Object({
  shard: Type.Integer(),
  position: Type.Integer(),
  behind: Type.Integer(),
  seconds_behind: Type.Number(),
  lost: Type.Integer(),
  batch: Type.Union([
    Type.Object({ worker: Type.String(), records: Type.Integer(), expires_at: time }),
    Type.Null(),
  ]),
});
const consumerDocument = Type.Object({
  name: Type.String(),
  created_at: time,
  ...filter,
  lease_seconds: Type.Integer(),
  behind: Type.Integer({ description: 'Positions of all logs, of all fleets, not done yet.' }),
  seconds_behind: Type.Number({ description: 'Age of the oldest record among them.' }),
  lost: Type.Integer({ description: 'Positions trimmed by retention before the consumer read them.' }),
  shards: Type.Array(shardDocument, {
    description: 'Its cursor in the log of each shard, and the leased batch.',
  }),
});
const noBatch = { batch_id: null, shard: null, expires_at: null, records: [] };
/** Documents the shape of the bytes from `describeBatch`. */
const batchDocument = Type.Unsafe<Buffer | typeof noBatch>(
  Type.Object({
    batch_id: nullable('string', { description: 'Null if there were no records.' }),
    shard: nullable('integer'),
    expires_at: nullable('string', { description: 'End of the lease; then the batch is redelivered.' }),
    records: Type.Array(
      Type.Object({
        record_id: Type.String(),
        device_id: Type.String(),
        kind: Type.String(),
        schema: Type.String(),
        stored_at: time,
        payload: Type.Object({}, { description: 'As it was sent.' }),
      }),
    ),
  }),
);
const settledDocument = Type.Object({
  records: Type.Integer({ description: 'Number of records; 0 if the batch was acknowledged before.' }),
});
const batchBody = Type.Object({ batch_id: Type.String({ maxLength: 64 }) }, { additionalProperties: false });
const fetchBody = Type.Partial(
  Type.Object({
    max: Type.Integer({
      minimum: 1,
      maximum: 100_000,
      description: 'Maximum number of records. Default: 100.',
    }),
    wait_seconds: Type.Integer({
      minimum: 0,
      maximum: 60,
      description: 'How long to wait for records. Default: 0.',
    }),
    worker: Type.String({ maxLength: 100, description: 'Name of the worker, shown with the consumer.' }),
  }),
  { additionalProperties: false },
);

function describe(status: ConsumerStatus): Static<typeof consumerDocument> {
  const { shards } = status;
  return {
    name: status.name,
    created_at: new Date(status.createdAtMs).toISOString(),
    kinds: [...status.kinds],
    schemas: [...status.schemas],
    lease_seconds: status.leaseSeconds,
    behind: shards.reduce((sum, { behind }) => sum + behind, 0),
    seconds_behind: Math.max(...shards.map(({ secondsBehind }) => secondsBehind)),
    lost: shards.reduce((sum, { lost }) => sum + lost, 0),
    shards: shards.map(({ shard, position, behind, secondsBehind, lost, lease }) => ({
      shard,
      position,
      behind,
      seconds_behind: secondsBehind,
      lost,
      batch: lease
        ? {
            worker: lease.worker,
            records: lease.records,
            expires_at: new Date(lease.expiresAtMs).toISOString(),
          }
        : null,
    })),
  };
}

/** Keeps the payloads byte for byte (D11). */
function describeBatch({ id, shard, records, expiresAtMs }: ConsumerBatch): Buffer {
  const head = JSON.stringify({ batch_id: id, shard, expires_at: new Date(expiresAtMs).toISOString() });
  const comma = Buffer.from(',');
  const items = records.flatMap((record, index) =>
    index === 0 ? [recordDocument(record)] : [comma, recordDocument(record)],
  );
  return Buffer.concat([Buffer.from(`${head.slice(0, -1)},"records":[`), ...items, Buffer.from(']}')]);
}

/** Leaves out absent members, which stay as they are. */
function changeOf({
  kinds,
  schemas,
  lease_seconds: lease,
}: Static<typeof settings>): Partial<ConsumerSettings> {
  return {
    ...(kinds && { kinds: kinds as RecordKind[] }),
    ...(schemas && { schemas }),
    ...(lease !== undefined && { leaseSeconds: lease ?? undefined }),
  };
}

function startOf(text: string | undefined): ConsumerStart {
  if (text === undefined || text === 'earliest' || text === 'latest') return text ?? 'earliest';
  return parseTime('start', text) ?? 'earliest';
}

const listing = {
  summary: 'List consumers',
  params: fleetPath,
  response: { 200: listOf(consumerDocument), ...errorAnswers },
};

const listConsumers =
  ({ registry, consumers }: AdminContext): Handler<typeof listing> =>
  async ({ params }) => {
    const { fleet } = registry.fleet(params.fleet_id);
    return { items: (await consumers.list(fleet.fleetId)).map(describe), next: null };
  };

const declaring = {
  summary: 'Create or change a consumer',
  description: 'Creates a consumer, or changes its filter and lease. Absent settings stay as they are.',
  params: consumerPath,
  body: settings,
  response: { 200: consumerDocument, 201: consumerDocument, ...errorAnswers },
};

const declareConsumer =
  ({ registry, consumers }: AdminContext): Handler<typeof declaring> =>
  async ({ params: { fleet_id, name }, body }, reply) => {
    const { fleet } = registry.fleet(fleet_id);
    if (!consumerNamePattern.test(name)) {
      throw new ApiError('bad_request', { msg: 'A consumer name must be 1 to 64 letters, digits, _ and -.' });
    }
    const { status, isNew } = await consumers.put(fleet.fleetId, name, changeOf(body), startOf(body.start));
    reply.code(isNew ? 201 : 200);
    return describe(status);
  };

const showing = {
  summary: 'Show a consumer',
  params: consumerPath,
  response: { 200: consumerDocument, ...errorAnswers },
};

const showConsumer =
  ({ registry, consumers }: AdminContext): Handler<typeof showing> =>
  async ({ params }) => {
    const { fleet } = registry.fleet(params.fleet_id);
    return describe(await consumers.get(fleet.fleetId, params.name));
  };

const deletion = {
  summary: 'Delete a consumer',
  params: consumerPath,
  response: { 204: Type.Null(), ...errorAnswers },
};

const deleteConsumer =
  ({ registry, consumers }: AdminContext): Handler<typeof deletion> =>
  async ({ params }, reply) => {
    const { fleet } = registry.fleet(params.fleet_id);
    await consumers.delete(fleet.fleetId, params.name);
    return reply.code(204).send(null);
  };

const fetching = {
  summary: 'Fetch a batch of records',
  description:
    'Leases records of one shard until they are acknowledged, released, or the lease ends. In order per device.',
  params: consumerPath,
  body: fetchBody,
  response: { 200: batchDocument, ...errorAnswers },
};

const fetchBatch =
  ({ registry, consumers }: AdminContext): Handler<typeof fetching> =>
  async ({ params, body }, reply) => {
    const { fleet } = registry.fleet(params.fleet_id);
    const { max = 100, wait_seconds = 0, worker = '' } = body;
    const ended = new AbortController();
    const timer = setTimeout(() => ended.abort(), wait_seconds * 1_000);
    reply.raw.once('close', () => ended.abort());
    if (wait_seconds === 0) ended.abort();
    const batch = await consumers
      .fetch(fleet.fleetId, params.name, { recordsMax: max, worker }, ended.signal)
      .finally(() => clearTimeout(timer));
    if (batch === undefined) return reply.send(noBatch);
    // The client is gone: make the batch available without waiting for the end of its lease.
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) void batch.release();
    });
    if (reply.raw.destroyed) void batch.release();
    return reply.type('application/json').send(describeBatch(batch));
  };

const acknowledging = {
  summary: 'Acknowledge a batch',
  description: 'Marks the records of a batch as done; answered once durable.',
  params: consumerPath,
  body: batchBody,
  response: { 200: settledDocument, ...errorAnswers },
};

const acknowledgeBatch =
  ({ registry, consumers }: AdminContext): Handler<typeof acknowledging> =>
  async ({ params, body }) => {
    const { fleet } = registry.fleet(params.fleet_id);
    return { records: await consumers.acknowledge(fleet.fleetId, params.name, body.batch_id) };
  };

const releasing = {
  summary: 'Release a batch',
  description: 'Makes the records of a batch available again at once.',
  params: consumerPath,
  body: batchBody,
  response: { 200: settledDocument, ...errorAnswers },
};

const releaseBatch =
  ({ registry, consumers }: AdminContext): Handler<typeof releasing> =>
  async ({ params, body }) => {
    const { fleet } = registry.fleet(params.fleet_id);
    return { records: await consumers.release(fleet.fleetId, params.name, body.batch_id) };
  };

/** `/fleets/{fleet_id}/consumers`, each consumer by name, and its batches. */
export function addConsumerRoutes(app: AdminApp, context: AdminContext): void {
  app.get(
    '/fleets/:fleet_id/consumers',
    { config: { scope: 'read' }, schema: listing },
    listConsumers(context),
  );
  app.put(
    '/fleets/:fleet_id/consumers/:name',
    { config: { scope: 'admin' }, schema: declaring },
    declareConsumer(context),
  );
  app.get(
    '/fleets/:fleet_id/consumers/:name',
    { config: { scope: 'read' }, schema: showing },
    showConsumer(context),
  );
  app.delete(
    '/fleets/:fleet_id/consumers/:name',
    { config: { scope: 'admin' }, schema: deletion },
    deleteConsumer(context),
  );
  app.post(
    '/fleets/:fleet_id/consumers/:name/fetch',
    { config: { scope: 'read' }, schema: fetching },
    fetchBatch(context),
  );
  app.post(
    '/fleets/:fleet_id/consumers/:name/acknowledge',
    { config: { scope: 'read' }, schema: acknowledging },
    acknowledgeBatch(context),
  );
  app.post(
    '/fleets/:fleet_id/consumers/:name/release',
    { config: { scope: 'read' }, schema: releasing },
    releaseBatch(context),
  );
}
