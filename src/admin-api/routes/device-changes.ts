import { type DeviceChangesBody, type deviceRoutes, devicesPerChangeMax } from '../../contract/device.ts';
import { tagsMax } from '../../core/bounds.ts';
import { type DeviceKey, deviceIdOf, deviceKeyOf } from '../../core/identity.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { ChangeOutcome, DeviceChange } from '../../domain/devices/device.ts';
import type { Shards } from '../../domain/shard.ts';
import { countsOf } from '../auth/audit-hook.ts';
import { type BulkWrites, onEachShard } from '../request/bulk-writes.ts';
import { deviceFilterOf, type FilterParts, selectedFilter } from '../request/device-filter.ts';
import type { HandlerOf } from '../request/routes.ts';
import { listDevices } from './device-list.ts';

interface Parts extends FilterParts {
  bulkWrites: BulkWrites;
  registry: Registry;
  shards: Shards;
}

const refusals: Partial<Record<ChangeOutcome, { error: string; msg: string }>> = {
  not_found: { error: 'device_not_found', msg: 'There is no such device.' },
  too_many_tags: { error: 'limit_reached', msg: `A device has ${tagsMax} tags at most.` },
};

function changeOf({ enabled, add_tags, remove_tags }: DeviceChangesBody['change']): DeviceChange {
  return {
    ...(enabled !== undefined && { enabled }),
    ...(add_tags !== undefined && { addTags: add_tags, tagsMax }),
    ...(remove_tags !== undefined && { removeTags: remove_tags }),
  };
}

/** Changes many devices: its route. */
export const changeFleetDevices =
  (parts: Parts): HandlerOf<typeof deviceRoutes, 'POST /fleets/{fleet_id}/devices:change'> =>
  async ({ params, audited, turn, body: { select, change, after = '', limit = devicesPerChangeMax } }) => {
    const { bulkWrites, registry, shards } = parts;
    const { fleet } = registry.fleet(params.fleet_id);
    const { device_ids = [], ...selector } = select;
    const filter = selectedFilter(selector, select.device_ids !== undefined, '/select');
    let devices: DeviceKey[];
    let next: string | null = null;
    if (filter === undefined) devices = [...new Set(device_ids)].map((id) => deviceKeyOf(fleet.fleetId, id));
    else {
      const conditions = await deviceFilterOf(fleet, filter, parts);
      const page = await listDevices(shards.all, conditions, after, limit, turn);
      devices = page.items.map(({ device }) => device);
      next = page.next;
    }
    const outcomes = await bulkWrites.each(devices, (some) =>
      onEachShard(
        shards,
        some,
        (device) => device,
        (shard, own) => shard.devices.changeMany(own, changeOf(change)),
      ),
    );
    const refused = outcomes.flatMap((outcome, index) => {
      const reason = refusals[outcome];
      return reason ? [{ device_id: deviceIdOf(devices[index] as DeviceKey), ...reason }] : [];
    });
    const counts = countsOf(outcomes);
    audited.about = {
      selected: filter === undefined ? 'by id' : JSON.stringify(select),
      change: JSON.stringify(change),
      ...counts,
    };
    const { changed = 0, unchanged = 0 } = counts;
    const changed_ids = devices.filter((_, index) => outcomes[index] === 'changed').map(deviceIdOf);
    return { changed, changed_ids, unchanged, refused, next };
  };
