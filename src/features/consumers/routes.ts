import { Type } from 'typebox';
import type { AdminApp, Handler } from '../../admin-api/request/context.ts';
import { routesOf } from '../../admin-api/request/route.ts';
import { parseTime, timeTextOf } from '../../admin-api/request/times.ts';
import {
  batchDocument,
  type ConsumerBody,
  type ConsumerDocument,
  consumerBody,
  consumerDocument,
  fetchBody,
  settleBatchBody,
  settledBatchDocument,
} from '../../contract/consumer.ts';
import { errorAnswers, fleetPath, listOf, namedPath, pauseBody } from '../../contract/document.ts';
import { ApiError } from '../../core/errors.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { ConsumerSettings, ConsumerStart } from '../records/consumer.ts';
import { recordJson } from '../records/record-line.ts';
import {
  type ConsumerBatch,
  type ConsumerService,
  type ConsumerStatus,
  consumerNamePattern,
} from './service.ts';

interface Needs {
  consumers: ConsumerService;
  registry: Registry;
}

const noBatch = { batch_id: null, shard: null, expires_at: null, records: [] };
const noBatchPaused = { ...noBatch, paused: true };
/** Documents the shape of the bytes from `describeBatch`. */
const fetchedBatch = Type.Unsafe<Buffer | typeof noBatch>(batchDocument);

function describe(status: ConsumerStatus): ConsumerDocument {
  const { shards } = status;
  return {
    name: status.name,
    created_at: timeTextOf(status.createdAtMs),
    kinds: [...status.kinds],
    schemas: [...status.schemas],
    lease_seconds: status.leaseSeconds,
    enabled: status.enabled,
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
            expires_at: timeTextOf(lease.expiresAtMs),
          }
        : null,
    })),
  };
}

/** Keeps the payloads byte for byte (D11). */
function describeBatch({ id, shard, records, expiresAtMs }: ConsumerBatch): Buffer {
  const head = JSON.stringify({ batch_id: id, shard, expires_at: timeTextOf(expiresAtMs) });
  const comma = Buffer.from(',');
  const items = records.flatMap((record, index) =>
    index === 0 ? [recordJson(record)] : [comma, recordJson(record)],
  );
  return Buffer.concat([Buffer.from(`${head.slice(0, -1)},"records":[`), ...items, Buffer.from(']}')]);
}

/** Leaves out absent members, which stay as they are. */
function changeOf({
  kinds,
  schemas,
  lease_seconds: lease,
  enabled,
}: ConsumerBody): Partial<ConsumerSettings> {
  return {
    ...(kinds && { kinds }),
    ...(schemas && { schemas }),
    ...(lease !== undefined && { leaseSeconds: lease ?? undefined }),
    ...(enabled !== undefined && { enabled }),
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
  ({ registry, consumers }: Needs): Handler<typeof listing> =>
  async ({ params }) => {
    const { fleet } = registry.fleet(params.fleet_id);
    return { items: (await consumers.list(fleet.fleetId)).map(describe), next: null };
  };

const declaring = {
  summary: 'Create or change a consumer',
  description: 'Creates a consumer, or changes its filter and lease. Absent settings stay as they are.',
  params: namedPath,
  body: consumerBody,
  response: { 200: consumerDocument, 201: consumerDocument, ...errorAnswers },
};

const declareConsumer =
  ({ registry, consumers }: Needs): Handler<typeof declaring> =>
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
  params: namedPath,
  response: { 200: consumerDocument, ...errorAnswers },
};

const showConsumer =
  ({ registry, consumers }: Needs): Handler<typeof showing> =>
  async ({ params }) => {
    const { fleet } = registry.fleet(params.fleet_id);
    return describe(await consumers.get(fleet.fleetId, params.name));
  };

const changing = {
  summary: 'Pause or resume a consumer',
  description:
    'A paused consumer keeps its cursors and leases no further batch: fetches wait as if there were no records. Leased batches can be acknowledged and released.',
  params: namedPath,
  body: pauseBody,
  response: { 200: consumerDocument, ...errorAnswers },
};

const changeConsumer =
  ({ registry, consumers }: Needs): Handler<typeof changing> =>
  async ({ params, body: { enabled }, audited }) => {
    audited.about = { enabled: String(enabled) };
    const { fleet } = registry.fleet(params.fleet_id);
    return describe(await consumers.change(fleet.fleetId, params.name, { enabled }));
  };

const deletion = {
  summary: 'Delete a consumer',
  params: namedPath,
  response: { 204: Type.Null(), ...errorAnswers },
};

const deleteConsumer =
  ({ registry, consumers }: Needs): Handler<typeof deletion> =>
  async ({ params }, reply) => {
    const { fleet } = registry.fleet(params.fleet_id);
    await consumers.delete(fleet.fleetId, params.name);
    return reply.code(204).send(null);
  };

const fetching = {
  summary: 'Fetch a batch of records',
  description:
    'Leases records of one shard until they are acknowledged, released, or the lease ends. In order per device.',
  params: namedPath,
  body: fetchBody,
  response: { 200: fetchedBatch, ...errorAnswers },
};

const fetchBatch =
  ({ registry, consumers }: Needs): Handler<typeof fetching> =>
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
    if (batch === 'paused') return reply.send(noBatchPaused);
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
  params: namedPath,
  body: settleBatchBody,
  response: { 200: settledBatchDocument, ...errorAnswers },
};

const acknowledgeBatch =
  ({ registry, consumers }: Needs): Handler<typeof acknowledging> =>
  async ({ params, body }) => {
    const { fleet } = registry.fleet(params.fleet_id);
    return { records: await consumers.acknowledge(fleet.fleetId, params.name, body.batch_id) };
  };

const releasing = {
  summary: 'Release a batch',
  description: 'Makes the records of a batch available again at once.',
  params: namedPath,
  body: settleBatchBody,
  response: { 200: settledBatchDocument, ...errorAnswers },
};

const releaseBatch =
  ({ registry, consumers }: Needs): Handler<typeof releasing> =>
  async ({ params, body }) => {
    const { fleet } = registry.fleet(params.fleet_id);
    return { records: await consumers.release(fleet.fleetId, params.name, body.batch_id) };
  };

/** `/fleets/{fleet_id}/consumers`, each consumer by name, and its batches. */
export function addConsumerRoutes(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  route('GET', '/fleets/:fleet_id/consumers', 'read', listing, listConsumers(context));
  route('PUT', '/fleets/:fleet_id/consumers/:name', 'admin', declaring, declareConsumer(context));
  route('GET', '/fleets/:fleet_id/consumers/:name', 'read', showing, showConsumer(context));
  route('PATCH', '/fleets/:fleet_id/consumers/:name', 'admin', changing, changeConsumer(context));
  route('DELETE', '/fleets/:fleet_id/consumers/:name', 'admin', deletion, deleteConsumer(context));
  route('POST', '/fleets/:fleet_id/consumers/:name/fetch', 'read', fetching, fetchBatch(context), {
    hasOwnLimit: true,
  });
  route(
    'POST',
    '/fleets/:fleet_id/consumers/:name/acknowledge',
    'read',
    acknowledging,
    acknowledgeBatch(context),
  );
  route('POST', '/fleets/:fleet_id/consumers/:name/release', 'read', releasing, releaseBatch(context));
}
