import type { deviceRoutes } from '../../contract/device.ts';
import { CostCache, yieldToEventLoop } from '../../core/async.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { Shards } from '../../domain/shard.ts';
import type { HandlerOf } from '../request/routes.ts';
import { listDevices } from '../routes/device-list.ts';

/** Devices whose tags are looked at, those with the first ids: generated ids make them a sample. */
const devicesMax = 2_000;
const devicesPerPage = 500;
/** Tags that are told of. */
const tagsMax = 200;
/** A sample is cached for this long, or for so many times as long as it took; of as many fleets. */
const freshMs = 60_000;
const freshPerCost = 100;
const fleetsMax = 200;

interface SampledTags {
  items: { tag: string; devices: number }[];
  is_all: boolean;
}

/** Lists the tags of a fleet's first devices, the most frequent first: its route. */
export function listDeviceTags({
  registry,
  shards,
}: {
  registry: Registry;
  shards: Shards;
}): HandlerOf<typeof deviceRoutes, 'GET /fleets/{fleet_id}/tags'> {
  const cache = new CostCache<SampledTags>({ freshMs, freshPerCost, max: fleetsMax });
  return async ({ params }) => {
    const { fleetId } = registry.fleet(params.fleet_id).fleet;
    return cache.get(fleetId, () => sample(shards, fleetId)).value;
  };
}

async function sample(shards: Shards, fleetId: string): Promise<SampledTags> {
  const counts = new Map<string, number>();
  let devices = 0;
  let after: string | null = '';
  while (after !== null && devices < devicesMax) {
    const page = await listDevices(shards.all, { fleetId }, after, devicesPerPage, yieldToEventLoop);
    for (const { tags } of page.items) for (const tag of tags) counts.set(tag, (counts.get(tag) ?? 0) + 1);
    devices += page.items.length;
    after = page.next;
  }
  const items = [...counts].map(([tag, count]) => ({ tag, devices: count }));
  return { items: items.sort((a, b) => b.devices - a.devices).slice(0, tagsMax), is_all: after === null };
}
