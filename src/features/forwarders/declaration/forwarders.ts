import { ApiError } from '../../../core/errors.ts';
import { schemaNamePattern } from '../../../core/identity.ts';
import { Changes } from '../../../declarations/changes.ts';
import { refuseDamaged } from '../../../declarations/refuse-damaged.ts';
import type { Registry } from '../../../declarations/registry.ts';
import { Collection } from '../../../storage/tables/collection.ts';
import type { TableStore } from '../../../storage/tables/table-store.ts';
import type { Forwarder } from './forwarder.ts';
import { type ForwarderName, forwarderTable } from './forwarder-records.ts';

/**
 * Store of all fleets' forwarders and their secrets, on the main thread: in the registry's environment and all in
 * memory. A change settles once durable.
 */
export class Forwarders {
  readonly #table: Collection<ForwarderName, Forwarder>;
  readonly #registry: Registry;
  readonly #forwardersPerFleetMax: number;
  readonly #changes: Changes;
  /** By fleet, then name. */
  readonly #fleets = new Map<string, Map<string, Forwarder>>();

  /** `stored` belongs to the registry, which closes it. */
  constructor(stored: TableStore, registry: Registry, limits: { forwardersPerFleetMax: number }) {
    this.#table = new Collection(stored, forwarderTable);
    this.#registry = registry;
    this.#forwardersPerFleetMax = limits.forwardersPerFleetMax;
    this.#changes = new Changes(stored);
    for (const [, forwarder] of this.#table.entries([], {}, refuseDamaged('forwarder')))
      this.#keep(forwarder);
  }

  all(): Forwarder[] {
    return [...this.#fleets.keys()].sort().flatMap((fleetId) => this.list(fleetId));
  }

  /** Lists a fleet's forwarders by name. @throws ApiError fleet_not_found. */
  list(fleetId: string): Forwarder[] {
    this.#registry.declared(fleetId);
    const known = [...(this.#fleets.get(fleetId)?.values() ?? [])];
    return known.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** @throws ApiError fleet_not_found. */
  find(fleetId: string, name: string): Forwarder | undefined {
    this.#registry.declared(fleetId);
    return this.#fleets.get(fleetId)?.get(name);
  }

  /** @throws ApiError fleet_not_found, forwarder_not_found. */
  get(fleetId: string, name: string): Forwarder {
    const forwarder = this.find(fleetId, name);
    if (forwarder === undefined) throw new ApiError('forwarder_not_found');
    return forwarder;
  }

  /**
   * Checks whether a forwarder of that name may be created.
   * @throws ApiError fleet_not_found, invalid_forwarder, limit_reached.
   */
  checkNew(fleetId: string, name: string): void {
    this.#registry.fleet(fleetId);
    if (!schemaNamePattern.test(name)) {
      throw new ApiError('invalid_forwarder', {
        msg: 'A forwarder name must be 1 to 255 letters, digits, _ and -.',
      });
    }
    if (this.list(fleetId).length >= this.#forwardersPerFleetMax) {
      throw new ApiError('limit_reached', {
        msg: 'Too many forwarders in this fleet (forwardersPerFleetMax). Delete one first.',
      });
    }
  }

  /** Adds a forwarder or replaces the one of that name. */
  put(forwarder: Forwarder): Promise<void> {
    return this.#changes.run(async () => {
      const { fleetId, name } = forwarder;
      if (this.find(fleetId, name) === undefined) this.checkNew(fleetId, name);
      await this.#changes.write(() => this.#table.put([fleetId, name], forwarder));
      this.#keep(forwarder);
    });
  }

  /** Returns the deleted forwarder. @throws ApiError forwarder_not_found. */
  delete(fleetId: string, name: string): Promise<Forwarder> {
    return this.#changes.run(async () => {
      const forwarder = this.get(fleetId, name);
      await this.#changes.write(() => void this.#table.delete([fleetId, name]));
      this.#fleets.get(fleetId)?.delete(name);
      return forwarder;
    });
  }

  /** Call it before the registry is closed, whose environment this writes to. */
  async close(): Promise<void> {
    await this.#changes.settled();
  }

  #keep(forwarder: Forwarder): void {
    const { fleetId, name } = forwarder;
    const fleet = this.#fleets.get(fleetId) ?? new Map<string, Forwarder>();
    this.#fleets.set(fleetId, fleet.set(name, forwarder));
  }
}
