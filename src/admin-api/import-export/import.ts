import { Readable } from 'node:stream';
import type { Static } from 'typebox';
import type { newDevicesBody } from '../../contract/device.ts';
import { type deviceImportRoutes, importTypes } from '../../contract/device-transfer.ts';
import { groupBy } from '../../core/groups.ts';
import { deviceIdOf, fleetIdOf } from '../../core/identity.ts';
import type { Registry } from '../../declarations/registry.ts';
import { descriptionOf } from '../../domain/devices/device-fields.ts';
import { type NewDevice, newDevice } from '../../domain/devices/new-device.ts';
import type { Shard, Shards } from '../../domain/shard.ts';
import type { AdminApiConfig } from '../config.ts';
import type { AdminApp } from '../request/admin-app.ts';
import { type BulkWrites, bulkDevicesMax } from '../request/bulk-writes.ts';
import type { HandlerOf, Handlers } from '../request/routes.ts';
import { Transfers } from '../request/transfers.ts';
import { DeviceImport } from './device-import.ts';

interface Parts {
  bulkWrites: BulkWrites;
  config: AdminApiConfig;
  registry: Registry;
  shards: Shards;
}

const header = 'fleet_id,device_id,device_secret\n';

function line({ device: { device }, secret }: NewDevice): string {
  return `${fleetIdOf(device)},${deviceIdOf(device)},${secret}\n`;
}

function byShard(devices: readonly NewDevice[], shards: Shards): Map<Shard, NewDevice[]> {
  return groupBy(devices, ({ device }) => shards.of(device.device));
}

/** Stores devices under generated ids, replacing ids that are taken. Returns the devices as stored. */
async function store(devices: readonly NewDevice[], shards: Shards): Promise<NewDevice[]> {
  const groups = [...byShard(devices, shards)];
  const stored = await Promise.all(
    groups.map(async ([shard, group]) => {
      const taken = await shard.devices.create(group.map(({ device }) => device));
      if (taken === undefined) return group;
      const renamed = group.map((one) => {
        const { device } = one.device;
        return device === taken ? newDevice(fleetIdOf(device), descriptionOf(one.device)) : one;
      });
      return store(renamed, shards);
    }),
  );
  return stored.flat();
}

async function* generate(
  { registry, shards, bulkWrites }: Pick<Parts, 'registry' | 'shards' | 'bulkWrites'>,
  { fleetId, count, tags }: { fleetId: string; count: number; tags: string[] },
  signal: AbortSignal,
  onStored: (devices: number) => void,
): AsyncGenerator<string> {
  const make = (left: number): NewDevice[] =>
    Array.from({ length: Math.min(left, bulkDevicesMax) }, () => newDevice(fleetId, { tags }));
  let next = make(count);
  for (let left = count; left > 0; left -= bulkDevicesMax) {
    signal.throwIfAborted();
    // It may be deleted meanwhile.
    registry.fleet(fleetId);
    const chunk = next;
    const storing = bulkWrites.run(() => store(chunk, shards));
    // This thread generates the next devices while the shards write.
    next = make(left - next.length);
    const stored = await storing;
    onStored(stored.length);
    // The header waits for the first devices, so that a refusal until then still gets its own status.
    yield (left === count ? header : '') + stored.map(line).join('');
  }
}

const importDevices =
  (
    { config, registry, shards, bulkWrites }: Parts,
    listed: DeviceImport,
    imports: Transfers,
  ): HandlerOf<typeof deviceImportRoutes, 'POST /fleets/{fleet_id}/devices:import'> =>
  async (request, reply) => {
    const { params, query } = request;
    const { fleetId } = registry.fleet(params.fleet_id).fleet;
    if (request.body instanceof Readable) {
      const { on_existing: onExisting, from_line: fromLine, resume: isResumed } = query;
      const badLinesMax = config.importBadLinesMax;
      const { type, lines } = listed.answer(request, {
        fleetId,
        onExisting,
        fromLine,
        isResumed,
        badLinesMax,
      });
      return reply.type(type).send(imports.begin(reply, fleetId, lines));
    }
    const { count, tags = [] } = request.body as Static<typeof newDevicesBody>;
    // Pulls the next chunk when the client has read the last; ends the generator when the client disconnects.
    let devices = 0;
    const csv = imports.begin(reply, fleetId, (signal) =>
      generate({ registry, shards, bulkWrites }, { fleetId, count, tags }, signal, (stored) => {
        devices += stored;
        request.audited.about.devices = devices;
      }),
    );
    return reply.type('text/csv; charset=utf-8').send(csv);
  };

/** Handles `/fleets/{fleet_id}/devices:import`. Has `app` take lists of devices as they come. */
export function deviceImportHandlers(app: AdminApp, parts: Parts): Handlers<typeof deviceImportRoutes> {
  const imports = new Transfers(app, 'imports', parts.config.importsMax);
  app.addContentTypeParser([...importTypes], (_request, payload, done) => done(null, payload));
  return {
    'POST /fleets/{fleet_id}/devices:import': importDevices(parts, new DeviceImport(parts), imports),
  };
}
