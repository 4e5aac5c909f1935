import { CostCache, type CostlyValue, yieldToEventLoop } from '../../core/async.ts';
import type { CountStep, DeviceFilter } from '../../domain/devices/device-query.ts';
import type { Shard } from '../../domain/shard.ts';
import { countListed, type ListedCount } from './listed-count.ts';

/** Entries counted in one turn of this thread: some milliseconds. */
const countedPerTurn = 2_000;
/** A count is cached for this long, or for ten times as long as the counting took. */
const freshMs = 5_000;
const freshPerCost = 10;
/** Maximum counts that are cached. */
const cachedMax = 2_000;

/** Counts devices of fleets by an index, in steps; concurrent and later requests share a count. */
export class DeviceCounts {
  readonly #shards: readonly Shard[];
  readonly #cache = new CostCache<number>({ freshMs, freshPerCost, max: cachedMax });
  readonly #listed = new CostCache<ListedCount>({ freshMs, freshPerCost, max: cachedMax });

  constructor(shards: readonly Shard[]) {
    this.#shards = shards;
  }

  /** Devices seen at this time or later. */
  active(fleetId: string, seenAfterMs: number): CostlyValue<number> {
    return this.#of('seen', { fleetId, seenAfterMs });
  }

  /** Devices whose mailbox has had the same mail at its head since before this time. */
  waiting(fleetId: string, waitingBeforeMs: number): CostlyValue<number> {
    return this.#of('waiting', { fleetId, waitingBeforeMs });
  }

  /** Those of them that were seen since then, up to a bound. */
  waitingActive(fleetId: string, waitingBeforeMs: number, seenAfterMs: number): CostlyValue<ListedCount> {
    return this.#listed.get(fleetId, () =>
      countListed(this.#shards, { fleetId, waitingBeforeMs, seenAfterMs }),
    );
  }

  #of(by: 'seen' | 'waiting', filter: DeviceFilter): CostlyValue<number> {
    return this.#cache.get(`${by} ${filter.fleetId}`, () => this.#count(by, filter));
  }

  async #count(by: 'seen' | 'waiting', filter: DeviceFilter): Promise<number> {
    let found = 0;
    for (const shard of this.#shards) {
      let after: string | undefined = '';
      while (after !== undefined) {
        const step: CountStep = await shard.devices.countStep(by, filter, after, countedPerTurn);
        found += step.count;
        after = step.reached;
        await yieldToEventLoop();
      }
    }
    return found;
  }
}
