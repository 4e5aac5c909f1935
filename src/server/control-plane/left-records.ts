import { sleep } from '../../core/async.ts';
import { fleetIdOf } from '../../core/identity.ts';
import type { Shard } from '../../domain/shard.ts';

/** Time of the main thread at once, and the pause behind it, which is longer. */
const readMs = 4;
const pauseMs = 10;

interface ReadLog {
  readonly log: Pick<Shard['log'], 'read'>;
}

/** A record of a fleet, or, behind the last shard, none. Everything before it has been read. */
interface Place {
  shard: number;
  position: number;
}

/**
 * Finds whether a deleted fleet has records left in the logs. It gets no new ones, so each log is read once, for all
 * such fleets together, up to the first record of each; from then on that one is looked at, until retention removes it.
 */
export class LeftRecords {
  readonly #shards: readonly ReadLog[];
  readonly #places = new Map<string, Place>();

  constructor(shards: readonly ReadLog[]) {
    this.#shards = shards;
  }

  /** Called once the id of the fleet is free. */
  forget(fleetId: string): void {
    this.#places.delete(fleetId);
  }

  /** Those of the fleets that have none. `proceed` is called before each step, and throws to end it. */
  async without(fleetIds: readonly string[], proceed: () => void): Promise<string[]> {
    const open = new Set<string>();
    for (const fleetId of fleetIds) {
      proceed();
      if (!(await this.#isStillThere(fleetId))) open.add(fleetId);
    }
    for (const shard of this.#shards.keys()) await this.#search(shard, open, proceed);
    return [...open];
  }

  #placeOf(fleetId: string): Place {
    return this.#places.get(fleetId) ?? { shard: 0, position: 0 };
  }

  async #isStillThere(fleetId: string): Promise<boolean> {
    const { shard, position } = this.#placeOf(fleetId);
    const page = await this.#shards[shard]?.log.read(position);
    const found = page?.records.find(({ device }) => fleetIdOf(device) === fleetId);
    if (found !== undefined) this.#places.set(fleetId, { shard, position: found.position });
    return found !== undefined;
  }

  /** Reads a log on from where the first of the fleets is, and removes those from `open` that it has a record of. */
  async #search(shard: number, open: Set<string>, proceed: () => void): Promise<void> {
    const missing = new Set([...open].filter((fleetId) => this.#placeOf(fleetId).shard === shard));
    let position = Math.min(...[...missing].map((fleetId) => this.#placeOf(fleetId).position));
    let pauseAtMs = performance.now() + readMs;
    while (missing.size > 0) {
      const page = await this.#shards[shard]?.log.read(position);
      if (page === undefined || page.next === position) break;
      for (const { device, position: at } of page.records) {
        const fleetId = fleetIdOf(device);
        if (!missing.delete(fleetId)) continue;
        open.delete(fleetId);
        this.#places.set(fleetId, { shard, position: at });
      }
      position = page.next;
      if (performance.now() < pauseAtMs) continue;
      await sleep(pauseMs);
      proceed();
      pauseAtMs = performance.now() + readMs;
    }
    for (const fleetId of missing) this.#places.set(fleetId, { shard: shard + 1, position: 0 });
  }
}
