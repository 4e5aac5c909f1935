import { errorAnswers, fleetPath } from '../../contract/document.ts';
import { fleetCountsDocument } from '../../contract/fleet.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { AdminApiConfig } from '../config.ts';
import type { DeviceCounts } from '../insight/device-counts.ts';
import type { AdminApp, AllShards, Handler } from '../request/context.ts';
import { activeSinceMs, stuckBeforeMs } from '../request/device-state.ts';
import { routesOf } from '../request/route.ts';
import { timeTextOf } from '../request/times.ts';

interface Needs {
  config: AdminApiConfig;
  registry: Registry;
  shards: AllShards;
}

async function totals(shards: AllShards, { fleetId }: Fleet): Promise<{ devices: number; disabled: number }> {
  const parts = await Promise.all(shards.all.map((shard) => shard.devices.fleetCounts(fleetId)));
  const sum = (of: (part: (typeof parts)[number]) => number) => parts.reduce((all, one) => all + of(one), 0);
  return { devices: sum(({ devices }) => devices), disabled: sum(({ disabled }) => disabled) };
}

const counting = {
  summary: 'Count the devices of a fleet',
  description:
    'Counts the devices of a fleet. `active` and `stuck` were counted at `counted_at`, at most some seconds ago, or ten times as long as counting takes; the others are current.',
  params: fleetPath,
  response: { 200: fleetCountsDocument, ...errorAnswers },
};

const countDevices =
  ({ config, registry, shards }: Needs, counts: DeviceCounts): Handler<typeof counting> =>
  async ({ params }) => {
    const { fleet } = registry.fleet(params.fleet_id);
    const active = counts.active(fleet.fleetId, activeSinceMs(fleet, config));
    const stuck = counts.waiting(fleet.fleetId, stuckBeforeMs(config));
    const connected = await Promise.all(
      shards.all.map((shard) => shard.streams.presence.connectedCount(fleet.fleetId)),
    );
    return {
      ...(await totals(shards, fleet)),
      connected: connected.reduce((all, one) => all + one, 0),
      active: await active.value,
      stuck: await stuck.value,
      counted_at: timeTextOf(Math.min(active.atMs, stuck.atMs)),
    };
  };

/** Adds `/fleets/{fleet_id}/counts`. */
export function addFleetCountRoute(app: AdminApp, context: Needs, counts: DeviceCounts): void {
  const route = routesOf(app);
  route('GET', '/fleets/:fleet_id/counts', 'read', counting, countDevices(context, counts));
}
