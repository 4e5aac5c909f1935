import {
  type AdminApp,
  type AllShards,
  deviceOfRequest,
  type Handler,
} from '../../admin-api/request/context.ts';
import { routesOf } from '../../admin-api/request/route.ts';
import { parseTime, timeTextOf } from '../../admin-api/request/times.ts';
import { devicePath, errorAnswers } from '../../contract/document.ts';
import { seriesDocument, seriesQuery } from '../../contract/insight/series.ts';
import { ApiError } from '../../core/errors.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { DeviceSeries } from './device-series.ts';

interface Needs {
  registry: Registry;
  series: DeviceSeries;
  shards: AllShards;
}

const dayMs = 86_400_000;

const reading = {
  summary: 'Chart the numbers in the datapoints of a device',
  description:
    'Minimum, mean, maximum and count by bucket of time, computed from the log, newest records first: up to 64 MiB or 500,000 records of all devices of its shard, or 2 seconds. A record counts at its recorded_at, if it has one and was stored before `to`.',
  params: devicePath,
  querystring: seriesQuery,
  response: { 200: seriesDocument, ...errorAnswers },
};

const readSeries =
  (context: Needs): Handler<typeof reading> =>
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

/** Adds `…/devices/{device_id}/series`. */
export function addSeriesRoute(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  route('GET', '/fleets/:fleet_id/devices/:device_id/series', 'read', reading, readSeries(context));
}
