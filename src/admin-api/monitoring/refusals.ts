import type {
  FleetRefusalDocument,
  RefusalDocument,
  refusalRoutes,
} from '../../contract/monitoring/refusal.ts';
import { addressText } from '../../core/address.ts';
import { ApiError } from '../../core/errors.ts';
import { deviceIdOf } from '../../core/identity.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { DeviceRefusalReason } from '../../domain/devices/current-refusals.ts';
import type { Refusal, RefusalLog } from '../../domain/devices/refusals.ts';
import type { Shards } from '../../domain/shard.ts';
import { deviceOfRequest } from '../request/admin-app.ts';
import type { Handlers } from '../request/routes.ts';
import { timeTextOf } from '../request/times.ts';
import type { FleetRefusalList, FleetRefusals } from './fleet-refusals.ts';

interface Parts {
  refused: FleetRefusals;
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
  value,
  count,
  firstMs,
  lastMs,
  lastAddress,
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
    value: value ?? null,
    count,
    first_at: timeTextOf(firstMs),
    last_at: timeTextOf(lastMs),
    last_address: lastAddress === undefined ? null : addressText(lastAddress),
    accepted_at: timeTextOf(acceptedMs),
  };
}

/** Part of a route's path that says which kind it takes. */
const partOf = { datapoint: '/datapoint/', message: '/msg/' };

type FleetQuery = { reason?: DeviceRefusalReason; kind?: 'datapoint' | 'message'; name?: string };

/** Lists what devices are refused, the last one first, of a reason, a kind and a schema if those are asked for. */
function itemsOf({ devices }: FleetRefusalList, { reason, kind, name }: FleetQuery): FleetRefusalDocument[] {
  const items = devices.flatMap(({ status, refusals }) =>
    refusals
      .filter((one) => reason === undefined || one.reason === reason)
      .filter(({ refusal: { route } }) => kind === undefined || route.includes(partOf[kind]))
      .filter(({ refusal }) => name === undefined || refusal.name === name)
      .map((one) => ({
        ...describe(one.refusal),
        device_id: deviceIdOf(status.device),
        device_name: status.name,
        reason: one.reason,
        is_now: one.isNow,
      })),
  );
  return items.sort((a, b) => (a.last_at < b.last_at ? 1 : -1));
}

function devicesOf(items: readonly FleetRefusalDocument[]): number {
  return new Set(items.map(({ device_id }) => device_id)).size;
}

/** Handles `…/devices/{device_id}/refusals`, and those of a fleet. */
export function refusalHandlers(parts: Parts): Handlers<typeof refusalRoutes> {
  return {
    'GET /fleets/{fleet_id}/refusals': async ({ params, query: { of: span, limit, ...query } }) => {
      const { fleet } = parts.registry.fleet(params.fleet_id);
      const found = await parts.refused.of(fleet.fleetId, span);
      const items = itemsOf(found, query);
      return {
        items: items.slice(0, limit),
        devices: devicesOf(items),
        devices_now: devicesOf(items.filter(({ is_now }) => is_now)),
        is_all: found.isAll,
      };
    },
    'GET /fleets/{fleet_id}/devices/{device_id}/refusals': async ({ params }) => {
      const device = deviceOfRequest(parts, params);
      const found = await parts.shards.of(device).devices.credentials(device);
      if (found === undefined) throw new ApiError('device_not_found');
      return { items: (await parts.refusals.of(device)).map(describe) };
    },
  };
}
