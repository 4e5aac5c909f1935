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
    description: 'Of its records; none for all.',
  }),
  schemas: Type.Array(Type.String({ maxLength: 255 }), {
    maxItems: 1_000,
    description: 'Of its records, by name; none for all.',
  }),
};
const settings = Type.Partial(
  Type.Object({
    ...filter,
    lease_seconds: nullable('integer', {
      minimum: 1,
      maximum: 3_600,
      description: 'How long a worker has for a batch; null for 30 seconds.',
    }),
    start: Type.Union([Type.Enum(['earliest', 'latest']), timeText('With what was stored then.')], {
      description: 'Where a new one begins, `earliest` if not given; one that exists stays where it is.',
    }),
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
  behind: Type.Integer({ description: 'Positions of all logs, whatever fleet they are of, not done yet.' }),
  seconds_behind: Type.Number({ description: 'Age of the oldest of them.' }),
  lost: Type.Integer({ description: 'Positions that were trimmed from the logs before it came there.' }),
  shards: Type.Array(shardDocument, {
    description: 'Its place in the log of each shard, and who is at work there.',
  }),
});
const noBatch = { batch_id: null, shard: null, expires_at: null, records: [] };
/** Documented by its shape, sent as the bytes of `describeBatch`. */
const batchDocument = Type.Unsafe<Buffer | typeof noBatch>(
  Type.Object({
    batch_id: nullable('string', { description: 'Null where there was nothing.' }),
    shard: nullable('integer'),
    expires_at: nullable('string', { description: 'Then the batch is given again.' }),
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
  records: Type.Integer({ description: 'How many; 0 where the batch was acknowledged before.' }),
});
const batchBody = Type.Object({ batch_id: Type.String({ maxLength: 64 }) }, { additionalProperties: false });
const fetchBody = Type.Partial(
  Type.Object({
    max: Type.Integer({ minimum: 1, maximum: 100_000, description: 'Records at most; 100 if not given.' }),
    wait_seconds: Type.Integer({
      minimum: 0,
      maximum: 60,
      description: 'How long to wait for records where there are none; 0 if not given.',
    }),
    worker: Type.String({ maxLength: 100, description: 'Who asks, shown with the consumer.' }),
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

/** With the payloads' own bytes (D11). */
function describeBatch({ id, shard, records, expiresAtMs }: ConsumerBatch): Buffer {
  const front = JSON.stringify({ batch_id: id, shard, expires_at: new Date(expiresAtMs).toISOString() });
  const comma = Buffer.from(',');
  const items = records.flatMap((record, index) =>
    index === 0 ? [recordDocument(record)] : [comma, recordDocument(record)],
  );
  return Buffer.concat([Buffer.from(`${front.slice(0, -1)},"records":[`), ...items, Buffer.from(']}')]);
}

/** What is absent is left out, and stays. */
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
  description: 'Makes a consumer, or changes what it is given from now on: what is absent stays.',
  params: consumerPath,
  body: settings,
  response: { 200: consumerDocument, 201: consumerDocument, ...errorAnswers },
};

const declareConsumer =
  ({ registry, consumers }: AdminContext): Handler<typeof declaring> =>
  async ({ params: { fleet_id, name }, body }, reply) => {
    const { fleet } = registry.fleet(fleet_id);
    if (!consumerNamePattern.test(name)) {
      throw new ApiError('bad_request', { msg: 'A consumer name is 1 to 64 letters, digits, _ and -.' });
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
    'Records of one shard that nobody else is given until they are acknowledged, released, or their lease ends. Of each device they come in order.',
  params: consumerPath,
  body: fetchBody,
  response: { 200: batchDocument, ...errorAnswers },
};

const fetchBatch =
  ({ registry, consumers }: AdminContext): Handler<typeof fetching> =>
  async ({ params, body }, reply) => {
    const { fleet } = registry.fleet(params.fleet_id);
    const { max = 100, wait_seconds = 0, worker = '' } = body;
    const gone = new AbortController();
    const timer = setTimeout(() => gone.abort(), wait_seconds * 1_000);
    reply.raw.once('close', () => gone.abort());
    if (wait_seconds === 0) gone.abort();
    const batch = await consumers
      .fetch(fleet.fleetId, params.name, { recordsMax: max, worker }, gone.signal)
      .finally(() => clearTimeout(timer));
    if (batch === undefined) return reply.send(noBatch);
    // Nobody took it: it need not wait for the end of its lease.
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) void batch.release();
    });
    if (reply.raw.destroyed) void batch.release();
    return reply.type('application/json').send(describeBatch(batch));
  };

const acknowledging = {
  summary: 'Acknowledge a batch',
  description: 'The records of a batch are done; answered once that is on disk.',
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
  description: 'The records of a batch are not done, and are given again at once.',
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

/** `/fleets/{fleet_id}/consumers`, each under its name, and its batches. */
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
