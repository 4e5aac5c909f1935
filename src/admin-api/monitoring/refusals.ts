import type { RefusalDocument, refusalRoutes } from '../../contract/monitoring/refusal.ts';
import { ApiError } from '../../core/errors.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { Refusal, RefusalLog } from '../../domain/devices/refusals.ts';
import type { Shards } from '../../domain/shard.ts';
import { deviceOfRequest } from '../request/admin-app.ts';
import type { Handlers } from '../request/routes.ts';
import { timeTextOf } from '../request/times.ts';

interface Parts {
  refusals: RefusalLog;
  registry: Registry;
  shards: Shards;
}

function describe({
  route,
  name,
  code,
  detail,
  msg,
  error,
  count,
  firstMs,
  lastMs,
  acceptedMs,
}: Refusal): RefusalDocument {
  return {
    route,
    name: name ?? null,
    error: code,
    detail: detail ?? null,
    msg,
    path: error?.path ?? null,
    path_msg: error?.msg ?? null,
    count,
    first_at: timeTextOf(firstMs),
    last_at: timeTextOf(lastMs),
    accepted_at: timeTextOf(acceptedMs),
  };
}

/** Handles `…/devices/{device_id}/refusals`. */
export function refusalHandlers(parts: Parts): Handlers<typeof refusalRoutes> {
  return {
    'GET /fleets/{fleet_id}/devices/{device_id}/refusals': async ({ params }) => {
      const device = deviceOfRequest(parts, params);
      const found = await parts.shards.of(device).devices.credentials(device);
      if (found === undefined) throw new ApiError('device_not_found');
      return { items: (await parts.refusals.of(device)).map(describe) };
    },
  };
}
