import { Readable } from 'node:stream';
import { type AdminApp, deviceOfRequest } from '../../admin-api/request/admin-app.ts';
import type { HandlerOf, Handlers } from '../../admin-api/request/routes.ts';
import { parseTime } from '../../admin-api/request/times.ts';
import type { recordRoutes } from '../../contract/record.ts';
import { ApiError } from '../../core/errors.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { WatchedDevices } from '../../domain/devices/watched-devices.ts';
import { recordOnOneLine } from './record-line.ts';
import type { RecordService, RecordsQuery } from './record-service.ts';

interface Parts {
  records: RecordService;
  registry: Registry;
  watched: WatchedDevices;
}

/** Removes undefined members, for exactOptionalPropertyTypes. */
function withoutUndefined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}

type Routes = typeof recordRoutes;

const readRecords =
  (context: Parts, open: Set<AbortController>): HandlerOf<Routes, 'GET /fleets/{fleet_id}/records'> =>
  async ({ params, query }, reply) => {
    const { fleet } = context.registry.fleet(params.fleet_id);
    const { kind, schema, device, after, limit, follow, progress, max_per_second: perSecondMax } = query;
    if (perSecondMax !== undefined && !follow) {
      throw new ApiError('bad_request', { msg: 'max_per_second needs follow=true.' });
    }
    const records: RecordsQuery = {
      fleetId: fleet.fleetId,
      follow,
      progress,
      ...withoutUndefined({
        kinds: kind,
        schemas: schema,
        devices: device?.map((device_id) => deviceOfRequest(context, { ...params, device_id })),
        fromMs: parseTime('from', query.from),
        toMs: parseTime('to', query.to),
        after,
        limit,
        perSecondMax,
      }),
    };
    if (reply.raw.destroyed) throw new ApiError('bad_request');
    const controller = new AbortController();
    open.add(controller);
    const [watched, ...others] = records.devices ?? [];
    const leave =
      follow && watched !== undefined && others.length === 0 ? context.watched.watch(watched) : undefined;
    reply.raw.once('close', () => {
      open.delete(controller);
      leave?.();
      controller.abort();
    });
    const lines = await context.records.read(records, controller.signal);
    reply.type('application/x-ndjson');
    return reply.send(Readable.from(lines, { highWaterMark: 1 }));
  };

/** Each record is on a line of its own, its payload the text that was sent (D11). */
const readLatestRecords =
  (context: Parts): HandlerOf<Routes, 'GET /fleets/{fleet_id}/records:latest'> =>
  async ({ params, query: { kind, schema, device, per_schema, limit } }, reply) => {
    const { fleet } = context.registry.fleet(params.fleet_id);
    const { records, isPartial } = await context.records.latest({
      fleetId: fleet.fleetId,
      isPerSchema: per_schema,
      limit,
      ...withoutUndefined({
        kinds: kind,
        schemas: schema,
        devices: device?.map((device_id) => deviceOfRequest(context, { ...params, device_id })),
      }),
    });
    const lines = records.map(recordOnOneLine).join(',\n');
    return reply.type('application/json').send(`{"items":[\n${lines}\n],"partial":${isPartial}}`);
  };

/** Handles `/fleets/{fleet_id}/records`. Ends the open streams when `app` closes. */
export function recordHandlers(parts: Parts, app: AdminApp): Handlers<Routes> {
  const open = new Set<AbortController>();
  app.addHook('preClose', async () => {
    for (const controller of open) controller.abort();
  });
  return {
    'GET /fleets/{fleet_id}/records': readRecords(parts, open),
    'GET /fleets/{fleet_id}/records:latest': readLatestRecords(parts),
  };
}
