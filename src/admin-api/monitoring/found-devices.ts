import type { DeviceCountDocument, deviceRoutes } from '../../contract/device.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { Shards } from '../../domain/shard.ts';
import type { AdminApiConfig } from '../config.ts';
import { deviceFilterOf, type FilterParts } from '../request/device-filter.ts';
import { activeSinceMs, statesOf } from '../request/device-state.ts';
import type { HandlerOf } from '../request/routes.ts';
import { listDevices } from '../routes/device-list.ts';
import type { DeviceCounts } from './device-counts.ts';

interface Parts extends FilterParts {
  config: AdminApiConfig;
  registry: Registry;
  shards: Shards;
}

/** Devices whose state is looked up per turn. */
const devicesPerTurn = 1_000;

/** Counts the devices that match a filter: its route. */
export const countFound =
  (
    parts: Parts,
    counts: DeviceCounts,
  ): HandlerOf<typeof deviceRoutes, 'GET /fleets/{fleet_id}/devices:count'> =>
  async ({ params, turn, query: { after, limit, ...conditions } }) => {
    const { registry, shards } = parts;
    const { fleet } = registry.fleet(params.fleet_id);
    if (Object.keys(conditions).length === 0) return countAll(parts, counts, fleet);
    const filter = await deviceFilterOf(fleet, conditions, parts);
    const { items, next } = await listDevices(shards.all, filter, after, limit, turn);
    let offline = 0;
    for (let start = 0; start < items.length; start += devicesPerTurn) {
      await turn();
      const states = await statesOf(parts, fleet, items.slice(start, start + devicesPerTurn));
      offline += states.filter((state) => state === 'offline').length;
    }
    return { devices: items.length, offline, next };
  };

/** Counts without looking at each: a connected device that is silent for long is counted as offline. */
async function countAll(
  { config, shards }: Parts,
  counts: DeviceCounts,
  fleet: Fleet,
): Promise<DeviceCountDocument> {
  const totals = await Promise.all(shards.all.map((shard) => shard.devices.fleetCounts(fleet.fleetId)));
  const devices = totals.reduce((sum, one) => sum + one.devices, 0);
  const active = await counts.active(fleet.fleetId, activeSinceMs(fleet, config)).value;
  return { devices, offline: Math.max(0, devices - active), next: null };
}
