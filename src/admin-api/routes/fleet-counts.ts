import { Type } from 'typebox';
import { yieldToEventLoop } from '../../core/async.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import type { Shard } from '../../domain/shard.ts';
import type { AdminApp, AdminContext, Handler } from '../request/context.ts';
import { errorAnswers, fleetPath, time } from '../request/documents.ts';
import { activeSinceMs } from './device-state.ts';

/** Entries that are counted in one turn of this thread: some milliseconds. */
const looksPerTurn = 2_000;
/** An answer is good for this long, and for as long as ten times the counting took. */
const freshMs = 5_000;
const freshPerCost = 10;
/** Fleets whose counts are kept. */
const keptMax = 1_000;

const countsDocument = Type.Object({
  devices: Type.Integer(),
  disabled: Type.Integer(),
  connected: Type.Integer({ description: 'With an open event stream.' }),
  active: Type.Integer({ description: 'Seen within active_seconds, connected or not.' }),
  counted_at: time,
});

interface Counted {
  active: Promise<number>;
  atMs: number;
  freshUntilMs: number;
}

/** How many devices were seen lately: counted over the index, a piece at a time, once for all who ask meanwhile. */
class ActiveCounts {
  readonly #shards: readonly Shard[];
  readonly #counted = new Map<string, Counted>();

  constructor(shards: readonly Shard[]) {
    this.#shards = shards;
  }

  of(fleetId: string, sinceMs: number): Counted {
    const known = this.#counted.get(fleetId);
    if (known !== undefined && Date.now() < known.freshUntilMs) return known;
    const atMs = Date.now();
    const counted: Counted = { active: this.#count(fleetId, sinceMs), atMs, freshUntilMs: Infinity };
    counted.active.then(
      () => {
        counted.freshUntilMs = Date.now() + Math.max(freshMs, freshPerCost * (Date.now() - atMs));
      },
      () => this.#counted.delete(fleetId),
    );
    this.#counted.delete(fleetId);
    this.#counted.set(fleetId, counted);
    const [oldest] = this.#counted.keys();
    if (this.#counted.size > keptMax && oldest !== undefined) this.#counted.delete(oldest);
    return counted;
  }

  async #count(fleetId: string, seenAfterMs: number): Promise<number> {
    let active = 0;
    for (const shard of this.#shards) {
      let after: string | undefined = '';
      while (after !== undefined) {
        const { count, reached } = await shard.countSeen({ fleetId, seenAfterMs }, after, looksPerTurn);
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
  const parts = await Promise.all(shards.all.map((shard) => shard.fleetCounts(fleetId)));
  const sum = (of: (part: (typeof parts)[number]) => number) => parts.reduce((all, one) => all + of(one), 0);
  return { devices: sum(({ devices }) => devices), disabled: sum(({ disabled }) => disabled) };
}

const counting = {
  summary: 'Count the devices of a fleet',
  description:
    'Devices of the fleet. `active` was counted at `counted_at`, some seconds ago at most, or ten times as long as counting takes; the others are as of now.',
  params: fleetPath,
  response: { 200: countsDocument, ...errorAnswers },
};

const countDevices =
  ({ config, registry, shards }: AdminContext, active: ActiveCounts): Handler<typeof counting> =>
  async ({ params }) => {
    const { fleet } = registry.fleet(params.fleet_id);
    const counted = active.of(fleet.fleetId, activeSinceMs(fleet, config));
    const connected = await Promise.all(
      shards.all.map((shard) => shard.presence.connectedCount(fleet.fleetId)),
    );
    return {
      ...(await totals(shards, fleet)),
      connected: connected.reduce((all, one) => all + one, 0),
      active: await counted.active,
      counted_at: new Date(counted.atMs).toISOString(),
    };
  };

/** `/fleets/{fleet_id}/counts`. */
export function addFleetCountRoute(app: AdminApp, context: AdminContext): void {
  app.get(
    '/fleets/:fleet_id/counts',
    { config: { scope: 'read' }, schema: counting },
    countDevices(context, new ActiveCounts(context.shards.all)),
  );
}
