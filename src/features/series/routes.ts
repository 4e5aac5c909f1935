import { deviceOfRequest } from '../../admin-api/request/admin-app.ts';
import type { HandlerOf, Handlers } from '../../admin-api/request/routes.ts';
import { parseTime, timeTextOf } from '../../admin-api/request/times.ts';
import type { seriesRoutes } from '../../contract/monitoring/series.ts';
import { ApiError } from '../../core/errors.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { Shards } from '../../domain/shard.ts';
import type { DeviceSeries } from './device-series.ts';

interface Parts {
  registry: Registry;
  series: DeviceSeries;
  shards: Shards;
}

const dayMs = 86_400_000;

type Routes = typeof seriesRoutes;

const readSeries =
  (context: Parts): HandlerOf<Routes, 'GET /fleets/{fleet_id}/devices/{device_id}/series'> =>
  async ({ params, query }) => {
    const { schema, fields, points } = query;
    const device = deviceOfRequest(context, params);
    const toMs = parseTime('to', query.to) ?? Date.now();
    const fromMs = parseTime('from', query.from) ?? toMs - dayMs;
    if (fromMs >= toMs) throw new ApiError('bad_request', { msg: 'from must be before to.' });
    const found = await context.shards.of(device).devices.credentials(device);
    if (found === undefined) throw new ApiError('device_not_found');
    const series = await context.series.read({ device, schema, fields, fromMs, toMs, pointsMax: points });
    return {
      from: timeTextOf(fromMs),
      to: timeTextOf(toMs),
      bucket_ms: series.bucketMs,
      fields: series.fields,
      complete_from: timeTextOf(series.completeFromMs),
      partial: series.isPartial,
    };
  };

/** Handles `…/devices/{device_id}/series`. */
export function seriesHandlers(parts: Parts): Handlers<Routes> {
  return { 'GET /fleets/{fleet_id}/devices/{device_id}/series': readSeries(parts) };
}
