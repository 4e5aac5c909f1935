import type { DeviceDocument, deviceRoutes } from '../../contract/device.ts';
import { clientAddressText } from '../../core/address.ts';
import { ApiError } from '../../core/errors.ts';
import { deviceIdOf, fleetIdOf, generateDeviceSecret } from '../../core/identity.ts';
import type { Registry } from '../../declarations/registry.ts';
import { descriptionOf } from '../../domain/devices/device-fields.ts';
import type { LockoutList } from '../../domain/devices/lockout.ts';
import { digestOf, newDevice } from '../../domain/devices/new-device.ts';
import type { Shards } from '../../domain/shard.ts';
import type { AdminApiConfig } from '../config.ts';
import type { DeviceCounts } from '../monitoring/device-counts.ts';
import { listDeviceTags } from '../monitoring/device-tags.ts';
import { countFound } from '../monitoring/found-devices.ts';
import { deviceOfRequest } from '../request/admin-app.ts';
import type { BulkWrites } from '../request/bulk-writes.ts';
import { deviceFilterOf, type FilterParts } from '../request/device-filter.ts';
import { describeDevices } from '../request/device-state.ts';
import type { HandlerOf, Handlers } from '../request/routes.ts';
import { timeTextOf } from '../request/times.ts';
import { changeFleetDevices } from './device-changes.ts';
import { listDevices } from './device-list.ts';

interface Parts extends FilterParts {
  bulkWrites: BulkWrites;
  config: AdminApiConfig;
  lockouts: LockoutList;
  registry: Registry;
  shards: Shards;
}

type Routes = typeof deviceRoutes;
type DevicePath = { fleet_id: string; device_id: string };

/** @throws ApiError device_not_found. */
async function readDevice(context: Parts, path: DevicePath): Promise<DeviceDocument> {
  const device = deviceOfRequest(context, path);
  const status = await context.shards.of(device).devices.get(device);
  if (status === undefined) throw new ApiError('device_not_found');
  const { fleet } = context.registry.fleet(path.fleet_id);
  const [document] = await describeDevices(context, fleet, [status]);
  if (document === undefined) throw new Error('one device was described');
  return document;
}

/** Devices described at once: under a millisecond of this thread. */
const devicesPerTurn = 250;

const listFleetDevices =
  (context: Parts): HandlerOf<Routes, 'GET /fleets/{fleet_id}/devices'> =>
  async ({ params, query, turn }) => {
    const { registry, shards } = context;
    const { fleet } = registry.fleet(params.fleet_id);
    const filter = await deviceFilterOf(fleet, query, context);
    const { items, next } = await listDevices(
      shards.all,
      filter,
      query.after,
      query.limit,
      turn,
      query.order,
    );
    const described: DeviceDocument[] = [];
    for (let start = 0; start < items.length; start += devicesPerTurn) {
      await turn();
      described.push(...(await describeDevices(context, fleet, items.slice(start, start + devicesPerTurn))));
    }
    return { items: described, next };
  };

const createDevice =
  ({ registry, shards }: Parts): HandlerOf<Routes, 'POST /fleets/{fleet_id}/devices'> =>
  async ({ params, body, audited }, reply) => {
    const { fleet } = registry.fleet(params.fleet_id);
    const { device_id: id, ...description } = body;
    const made = newDevice(fleet.fleetId, description, id);
    const { device, enabled, createdAtMs } = made.device;
    audited.about.device_id = deviceIdOf(device);
    const taken = await shards.of(device).devices.create([made.device]);
    if (taken !== undefined) throw new ApiError('already_exists');
    reply.code(201);
    return {
      fleet_id: fleet.fleetId,
      device_id: deviceIdOf(device),
      device_secret: made.secret,
      ...descriptionOf(made.device),
      enabled,
      created_at: timeTextOf(createdAtMs),
    };
  };

const lockoutsShownMax = 20;

const showDevice =
  (context: Parts): HandlerOf<Routes, 'GET /fleets/{fleet_id}/devices/{device_id}'> =>
  async ({ params }) => {
    const document = await readDevice(context, params);
    const device = deviceOfRequest(context, params);
    const { items, total } = await context.shards.of(device).mail.listDelayed(device, '', 1);
    const { fleet_id: fleetId, device_id: deviceId } = document;
    const lockouts = context.lockouts.list({ fleetId, deviceId }, '', lockoutsShownMax);
    return {
      ...document,
      delayed_mails: total,
      next_delivery_at: timeTextOf(items[0]?.deliverAtMs),
      lockouts: lockouts.items.map(({ address, untilMs }) => ({
        address: clientAddressText(address),
        until: timeTextOf(untilMs),
      })),
    };
  };

const rotateSecret =
  (context: Parts): HandlerOf<Routes, 'POST /fleets/{fleet_id}/devices/{device_id}/rotate-secret'> =>
  async ({ params, body: { grace_seconds: graceSeconds = 0 } }) => {
    const { config, shards } = context;
    const device = deviceOfRequest(context, params);
    if (graceSeconds > config.settings.current.secretGraceSecondsMax) {
      const msg = `grace_seconds is at most ${config.settings.current.secretGraceSecondsMax} (secretGraceSecondsMax).`;
      throw new ApiError('invalid_body', { msg });
    }
    const secret = generateDeviceSecret();
    const oldUntilMs = graceSeconds === 0 ? undefined : Date.now() + graceSeconds * 1_000;
    const rotation = { digest: digestOf(secret), oldUntilMs };
    const found = await shards.of(device).devices.change(device, { rotation });
    if (!found) throw new ApiError('device_not_found');
    return {
      fleet_id: fleetIdOf(device),
      device_id: deviceIdOf(device),
      device_secret: secret,
      old_secret_until: timeTextOf(oldUntilMs),
    };
  };

/** Handles `/fleets/{fleet_id}/devices`, each device under it, the rotation of its secret, and changes of many. */
export function deviceHandlers(parts: Parts, counts: DeviceCounts): Handlers<Routes> {
  return {
    'GET /fleets/{fleet_id}/devices': listFleetDevices(parts),
    'GET /fleets/{fleet_id}/devices:count': countFound(parts, counts),
    'GET /fleets/{fleet_id}/tags': listDeviceTags(parts),
    'POST /fleets/{fleet_id}/devices': createDevice(parts),
    'GET /fleets/{fleet_id}/devices/{device_id}': showDevice(parts),
    'PATCH /fleets/{fleet_id}/devices/{device_id}': async ({ params, body }) => {
      const device = deviceOfRequest(parts, params);
      const found = await parts.shards.of(device).devices.change(device, body);
      if (!found) throw new ApiError('device_not_found');
      return readDevice(parts, params);
    },
    'DELETE /fleets/{fleet_id}/devices/{device_id}': async ({ params }, reply) => {
      const device = deviceOfRequest(parts, params);
      if (!(await parts.shards.of(device).devices.delete(device))) throw new ApiError('device_not_found');
      return reply.code(204).send(null);
    },
    'POST /fleets/{fleet_id}/devices/{device_id}/rotate-secret': rotateSecret(parts),
    'POST /fleets/{fleet_id}/devices:change': changeFleetDevices(parts),
  };
}
