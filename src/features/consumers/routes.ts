import type { HandlerOf, Handlers } from '../../admin-api/request/routes.ts';
import { parseTime, timeTextOf } from '../../admin-api/request/times.ts';
import type { ConsumerBody, ConsumerDocument, consumerRoutes } from '../../contract/consumer.ts';
import { ApiError } from '../../core/errors.ts';
import type { Registry } from '../../declarations/registry.ts';
import { recordJson } from '../records/record-line.ts';
import type { ConsumerSettings, ConsumerStart } from './consumer.ts';
import {
  type ConsumerBatch,
  type ConsumerService,
  type ConsumerStatus,
  consumerNamePattern,
} from './consumer-service.ts';

interface Parts {
  consumers: ConsumerService;
  registry: Registry;
}

const noBatch = { batch_id: null, shard: null, expires_at: null, records: [] };
const noBatchPaused = { ...noBatch, paused: true };
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

type Routes = typeof consumerRoutes;

const declareConsumer =
  ({ registry, consumers }: Parts): HandlerOf<Routes, 'PUT /fleets/{fleet_id}/consumers/{name}'> =>
  async ({ params: { fleet_id, name }, body }, reply) => {
    const { fleet } = registry.fleet(fleet_id);
    if (!consumerNamePattern.test(name)) {
      throw new ApiError('bad_request', { msg: 'A consumer name must be 1 to 64 letters, digits, _ and -.' });
    }
    const { status, isNew } = await consumers.put(fleet.fleetId, name, changeOf(body), startOf(body.start));
    reply.code(isNew ? 201 : 200);
    return describe(status);
  };

const fetchBatch =
  ({ registry, consumers }: Parts): HandlerOf<Routes, 'POST /fleets/{fleet_id}/consumers/{name}/fetch'> =>
  async ({ params, body }, reply) => {
    const { fleet } = registry.fleet(params.fleet_id);
    const { max = 100, wait_seconds = 0, worker = '' } = body;
    const ended = new AbortController();
    const timer = setTimeout(() => ended.abort(), wait_seconds * 1_000);
    reply.raw.once('close', () => ended.abort());
    // It may be closed already: a request waits for its turn.
    if (wait_seconds === 0 || reply.raw.destroyed) ended.abort();
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

/** Handles `/fleets/{fleet_id}/consumers`, each consumer by name, and its batches. */
export function consumerHandlers(parts: Parts): Handlers<Routes> {
  const { registry, consumers } = parts;
  const fleetOf = (params: { fleet_id: string }): string => registry.fleet(params.fleet_id).fleet.fleetId;
  return {
    'GET /fleets/{fleet_id}/consumers': async ({ params }) => ({
      items: (await consumers.list(fleetOf(params))).map(describe),
      next: null,
    }),
    'PUT /fleets/{fleet_id}/consumers/{name}': declareConsumer(parts),
    'GET /fleets/{fleet_id}/consumers/{name}': async ({ params }) =>
      describe(await consumers.get(fleetOf(params), params.name)),
    'PATCH /fleets/{fleet_id}/consumers/{name}': async ({ params, body: { enabled }, audited }) => {
      audited.about = { enabled: String(enabled) };
      return describe(await consumers.change(fleetOf(params), params.name, { enabled }));
    },
    'DELETE /fleets/{fleet_id}/consumers/{name}': async ({ params }, reply) => {
      await consumers.delete(fleetOf(params), params.name);
      return reply.code(204).send(null);
    },
    'POST /fleets/{fleet_id}/consumers/{name}/fetch': fetchBatch(parts),
    'POST /fleets/{fleet_id}/consumers/{name}/acknowledge': async ({ params, body }) => ({
      records: await consumers.acknowledge(fleetOf(params), params.name, body.batch_id),
    }),
    'POST /fleets/{fleet_id}/consumers/{name}/release': async ({ params, body }) => ({
      records: await consumers.release(fleetOf(params), params.name, body.batch_id),
    }),
  };
}
