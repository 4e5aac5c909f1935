import { errorAnswers, fleetPath } from '../../contract/document.ts';
import { fleetCountsDocument } from '../../contract/fleet.ts';
import { yieldToEventLoop } from '../../core/async.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import type { Shard } from '../../domain/shard.ts';
import type { AdminApp, AdminContext, Handler } from '../request/context.ts';
import { timeTextOf } from '../request/times.ts';
import { activeSinceMs } from './device-state.ts';

/** Entries counted in one turn of this thread: some milliseconds. */
const countedPerTurn = 2_000;
/** A count is cached for this long, or for ten times as long as the counting took. */
const freshMs = 5_000;
const freshPerCost = 10;
/** Maximum fleets whose counts are cached. */
const cachedMax = 1_000;

interface ActiveCount {
  active: Promise<number>;
  atMs: number;
  freshUntilMs: number;
}

/** Counts recently seen devices by the index, in steps; concurrent and later requests share a count. */
class ActiveCounts {
  readonly #shards: readonly Shard[];
  readonly #cache = new Map<string, ActiveCount>();

  constructor(shards: readonly Shard[]) {
    this.#shards = shards;
  }

  of(fleetId: string, sinceMs: number): ActiveCount {
    const cached = this.#cache.get(fleetId);
    if (cached !== undefined && Date.now() < cached.freshUntilMs) return cached;
    const atMs = Date.now();
    const counted: ActiveCount = { active: this.#count(fleetId, sinceMs), atMs, freshUntilMs: Infinity };
    counted.active.then(
      () => {
        counted.freshUntilMs = Date.now() + Math.max(freshMs, freshPerCost * (Date.now() - atMs));
      },
      () => this.#cache.delete(fleetId),
    );
    this.#cache.delete(fleetId);
    this.#cache.set(fleetId, counted);
    const [oldest] = this.#cache.keys();
    if (this.#cache.size > cachedMax && oldest !== undefined) this.#cache.delete(oldest);
    return counted;
  }

  async #count(fleetId: string, seenAfterMs: number): Promise<number> {
    let active = 0;
    for (const shard of this.#shards) {
      let after: string | undefined = '';
      while (after !== undefined) {
        const { count, reached } = await shard.devices.countSeen(
          { fleetId, seenAfterMs },
          after,
          countedPerTurn,
        );
        active += count;
        after = reached;
        await yieldToEventLoop();
      }
    }
    return active;
  }
}

async function totals(
  shards: AdminContext['shards'],
  { fleetId }: Fleet,
): Promise<{ devices: number; disabled: number }> {
  const parts = await Promise.all(shards.all.map((shard) => shard.devices.fleetCounts(fleetId)));
  const sum = (of: (part: (typeof parts)[number]) => number) => parts.reduce((all, one) => all + of(one), 0);
  return { devices: sum(({ devices }) => devices), disabled: sum(({ disabled }) => disabled) };
}

const counting = {
  summary: 'Count the devices of a fleet',
  description:
    'Counts the devices of a fleet. `active` was counted at `counted_at`, at most some seconds ago, or ten times as long as counting takes; the others are current.',
  params: fleetPath,
  response: { 200: fleetCountsDocument, ...errorAnswers },
};

const countDevices =
  ({ config, registry, shards }: AdminContext, active: ActiveCounts): Handler<typeof counting> =>
  async ({ params }) => {
    const { fleet } = registry.fleet(params.fleet_id);
    const counted = active.of(fleet.fleetId, activeSinceMs(fleet, config));
    const connected = await Promise.all(
      shards.all.map((shard) => shard.streams.presence.connectedCount(fleet.fleetId)),
    );
    return {
      ...(await totals(shards, fleet)),
      connected: connected.reduce((all, one) => all + one, 0),
      active: await counted.active,
      counted_at: timeTextOf(counted.atMs),
    };
  };

/** Adds `/fleets/{fleet_id}/counts`. */
export function addFleetCountRoute(app: AdminApp, context: AdminContext): void {
  app.get(
    '/fleets/:fleet_id/counts',
    { config: { scope: 'read' }, schema: counting },
    countDevices(context, new ActiveCounts(context.shards.all)),
  );
}
