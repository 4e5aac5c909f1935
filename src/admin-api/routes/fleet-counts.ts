import type { fleetRoutes } from '../../contract/fleet.ts';
import type { Awaitable } from '../../core/async.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { Shard, Shards } from '../../domain/shard.ts';
import type { AdminApiConfig } from '../config.ts';
import type { DeviceCounts } from '../monitoring/device-counts.ts';
import { activeSinceMs, stuckBeforeMs } from '../request/device-state.ts';
import type { HandlerOf } from '../request/routes.ts';
import { timeTextOf } from '../request/times.ts';

/** Parts that counting devices uses. */
export interface CountParts {
  config: AdminApiConfig;
  registry: Registry;
  shards: Shards;
}

async function totals(shards: Shards, { fleetId }: Fleet): Promise<{ devices: number; disabled: number }> {
  const parts = await Promise.all(shards.all.map((shard) => shard.devices.fleetCounts(fleetId)));
  const sum = (of: (part: (typeof parts)[number]) => number) => parts.reduce((all, one) => all + of(one), 0);
  return { devices: sum(({ devices }) => devices), disabled: sum(({ disabled }) => disabled) };
}

async function sumOver(shards: Shards, of: (shard: Shard) => Awaitable<number>): Promise<number> {
  const parts = await Promise.all(shards.all.map(of));
  return parts.reduce((sum, one) => sum + one, 0);
}

/** Counts the devices of a fleet with open event streams. */
export function connectedCount(shards: Shards, fleetId: string): Promise<number> {
  return sumOver(shards, ({ streams }) => streams.presence.connectedCount(fleetId));
}

/** Counts the devices of a fleet: its route. */
export const countFleetDevices =
  (
    { config, registry, shards }: CountParts,
    counts: DeviceCounts,
  ): HandlerOf<typeof fleetRoutes, 'GET /fleets/{fleet_id}/counts'> =>
  async ({ params }) => {
    const { fleet } = registry.fleet(params.fleet_id);
    const active = counts.active(fleet.fleetId, activeSinceMs(fleet, config));
    const stuck = counts.waiting(fleet.fleetId, stuckBeforeMs(config));
    return {
      ...(await totals(shards, fleet)),
      connected: await connectedCount(shards, fleet.fleetId),
      active: await active.value,
      stuck: await stuck.value,
      mail_bytes: await sumOver(shards, ({ mail }) => mail.bytesOfFleet(fleet.fleetId)),
      counted_at: timeTextOf(Math.min(active.atMs, stuck.atMs)),
    };
  };
