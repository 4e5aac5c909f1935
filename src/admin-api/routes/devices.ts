import { type Static, Type } from 'typebox';
import {
  createdDeviceDocument,
  type DeviceChangeBody,
  type DeviceDocument,
  deviceChangeBody,
  deviceDocument,
  deviceFilter,
  newDeviceBody,
  rotatedSecretDocument,
  shownDeviceDocument,
} from '../../contract/device.ts';
import { devicePath, errorAnswers, fleetPath, listOf, pageLimit } from '../../contract/document.ts';
import { clientAddressText } from '../../core/address.ts';
import { ApiError } from '../../core/errors.ts';
import { deviceIdOf, fleetIdOf, generateDeviceSecret } from '../../core/identity.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { DeviceChange } from '../../domain/devices/device.ts';
import type { LockoutList } from '../../domain/devices/lockout.ts';
import { digestOf, newDevice } from '../../domain/devices/new-device.ts';
import type { AdminApiConfig } from '../config.ts';
import { type AdminApp, type AllShards, deviceOfRequest, type Handler } from '../request/context.ts';
import { describeDevices } from '../request/device-state.ts';
import { routesOf } from '../request/route.ts';
import { timeTextOf } from '../request/times.ts';
import { deviceFilterOf } from './device-filter.ts';
import { cursorPattern, listDevices } from './device-list.ts';

interface Needs {
  config: AdminApiConfig;
  lockouts: LockoutList;
  registry: Registry;
  shards: AllShards;
}

/** Omits absent fields, because the shard takes a present one, even if undefined, as a change. */
function changeOf({ enabled, name, tags }: DeviceChangeBody): DeviceChange {
  return {
    ...(enabled !== undefined && { enabled }),
    ...(name !== undefined && { name }),
    ...(tags !== undefined && { tags }),
  };
}

/** @throws ApiError device_not_found. */
async function readDevice(context: Needs, path: Static<typeof devicePath>): Promise<DeviceDocument> {
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

const listing = {
  summary: 'List or find devices',
  description:
    'In order of device id, or of the most selective index. A page scans a bounded number of devices, so it may have fewer than `limit`, or none, and still have a `next`.',
  params: fleetPath,
  querystring: Type.Object({
    ...deviceFilter.properties,
    after: Type.String({ default: '', pattern: cursorPattern }),
    limit: pageLimit,
  }),
  response: { 200: listOf(deviceDocument), ...errorAnswers },
};

const listFleetDevices =
  (context: Needs): Handler<typeof listing> =>
  async ({ params, query, turn }) => {
    const { config, registry, shards } = context;
    const { fleet } = registry.fleet(params.fleet_id);
    const filter = deviceFilterOf(fleet, query, config);
    const { items, next } = await listDevices(shards.all, filter, query.after, query.limit, turn);
    const described: DeviceDocument[] = [];
    for (let start = 0; start < items.length; start += devicesPerTurn) {
      await turn();
      described.push(...(await describeDevices(context, fleet, items.slice(start, start + devicesPerTurn))));
    }
    return { items: described, next };
  };

const creation = {
  summary: 'Create a device',
  params: fleetPath,
  body: newDeviceBody,
  response: { 201: createdDeviceDocument, ...errorAnswers },
};

const createDevice =
  ({ registry, shards }: Needs): Handler<typeof creation> =>
  async ({ params, body, audited }, reply) => {
    const { fleet } = registry.fleet(params.fleet_id);
    const made = newDevice(fleet.fleetId, { ...body, deviceId: body.device_id });
    const { device, name, tags, enabled, createdAtMs } = made.device;
    audited.about.device_id = deviceIdOf(device);
    const taken = await shards.of(device).devices.create([made.device]);
    if (taken !== undefined) throw new ApiError('already_exists');
    reply.code(201);
    return {
      fleet_id: fleet.fleetId,
      device_id: deviceIdOf(device),
      device_secret: made.secret,
      name,
      tags: [...tags],
      enabled,
      created_at: timeTextOf(createdAtMs),
    };
  };

const lockoutsShownMax = 20;

const showing = {
  summary: 'Show a device',
  params: devicePath,
  response: { 200: shownDeviceDocument, ...errorAnswers },
};

const showDevice =
  (context: Needs): Handler<typeof showing> =>
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

const changing = {
  summary: 'Change a device',
  params: devicePath,
  body: deviceChangeBody,
  response: { 200: deviceDocument, ...errorAnswers },
};

const changeDevice =
  (context: Needs): Handler<typeof changing> =>
  async ({ params, body }) => {
    const { shards } = context;
    const device = deviceOfRequest(context, params);
    const found = await shards.of(device).devices.change(device, changeOf(body));
    if (!found) throw new ApiError('device_not_found');
    return readDevice(context, params);
  };

const deletion = {
  summary: 'Delete a device with its mailbox',
  params: devicePath,
  response: { 204: Type.Null(), ...errorAnswers },
};

const deleteDevice =
  (context: Needs): Handler<typeof deletion> =>
  async ({ params }, reply) => {
    const { shards } = context;
    const device = deviceOfRequest(context, params);
    if (!(await shards.of(device).devices.delete(device))) throw new ApiError('device_not_found');
    return reply.code(204).send(null);
  };

const renewal = {
  summary: 'Rotate the secret of a device',
  description:
    'Generates a new secret, shown only once. The old one expires at once, or after `grace_seconds`, during which both are valid.',
  params: devicePath,
  body: Type.Partial(Type.Object({ grace_seconds: Type.Integer({ minimum: 0 }) }), {
    additionalProperties: false,
  }),
  response: { 200: rotatedSecretDocument, ...errorAnswers },
};

const rotateSecret =
  (context: Needs): Handler<typeof renewal> =>
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

/** Adds `/fleets/{fleet_id}/devices`, each device under it, and the rotation of its secret. */
export function addDeviceRoutes(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  const device = '/fleets/:fleet_id/devices/:device_id';
  route('GET', '/fleets/:fleet_id/devices', 'read', listing, listFleetDevices(context));
  route('POST', '/fleets/:fleet_id/devices', 'provision', creation, createDevice(context));
  route('GET', device, 'read', showing, showDevice(context));
  route('PATCH', device, 'provision', changing, changeDevice(context));
  route('DELETE', device, 'provision', deletion, deleteDevice(context));
  route('POST', `${device}/rotate-secret`, 'provision', renewal, rotateSecret(context));
}
