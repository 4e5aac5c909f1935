import { ApiError, OperatorError } from '../../../core/errors.ts';
import { fleetIdLength, schemaNamePattern } from '../../../core/identity.ts';
import { Changes } from '../../../declarations/changes.ts';
import type { Registry } from '../../../declarations/registry.ts';
import type { StoredTables, Table } from '../../../storage/lmdb/environment/stored-tables.ts';
import type { Forwarder } from './forwarder.ts';
import { keyOfForwarder, packForwarder, unpackForwarder } from './forwarder-records.ts';

/**
 * Store of all fleets' forwarders and their secrets, on the main thread: in the registry's environment and all in
 * memory. A change settles once durable.
 */
export class Forwarders {
  readonly #table: Table;
  readonly #registry: Registry;
  readonly #forwardersPerFleetMax: number;
  readonly #changes: Changes;
  /** By fleet, then name. */
  readonly #fleets = new Map<string, Map<string, Forwarder>>();

  /** `stored` belongs to the registry, which closes it. */
  constructor(stored: StoredTables, registry: Registry, limits: { forwardersPerFleetMax: number }) {
    this.#table = stored.table('forwarders');
    this.#registry = registry;
    this.#forwardersPerFleetMax = limits.forwardersPerFleetMax;
    this.#changes = new Changes(stored);
    for (const { key, value } of this.#table.getRange({})) this.#keep(readForwarder(key, value));
  }

  all(): Forwarder[] {
    return [...this.#fleets.keys()].sort().flatMap((fleetId) => this.list(fleetId));
  }

  /** Lists a fleet's forwarders by name. @throws ApiError fleet_not_found. */
  list(fleetId: string): Forwarder[] {
    this.#registry.fleet(fleetId);
    const known = [...(this.#fleets.get(fleetId)?.values() ?? [])];
    return known.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** @throws ApiError fleet_not_found. */
  find(fleetId: string, name: string): Forwarder | undefined {
    this.#registry.fleet(fleetId);
    return this.#fleets.get(fleetId)?.get(name);
  }

  /** @throws ApiError fleet_not_found, forwarder_not_found. */
  get(fleetId: string, name: string): Forwarder {
    const forwarder = this.find(fleetId, name);
    if (forwarder === undefined) throw new ApiError('forwarder_not_found');
    return forwarder;
  }

  /** Checks whether a forwarder of that name may be created. @throws ApiError invalid_forwarder, limit_reached. */
  checkNew(fleetId: string, name: string): void {
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
      await this.#changes.write(() => {
        this.#table.putSync(keyOfForwarder(fleetId, name), packForwarder(forwarder));
      });
      this.#keep(forwarder);
    });
  }

  /** Returns the deleted forwarder. @throws ApiError forwarder_not_found. */
  delete(fleetId: string, name: string): Promise<Forwarder> {
    return this.#changes.run(async () => {
      const forwarder = this.get(fleetId, name);
      await this.#changes.write(() => {
        this.#table.removeSync(keyOfForwarder(fleetId, name));
      });
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

/** @throws OperatorError, since skipping a damaged forwarder would silently stop forwarding. */
function readForwarder(key: Buffer, bytes: Buffer): Forwarder {
  try {
    const forwarder = unpackForwarder(bytes);
    if (keyOfForwarder(forwarder.fleetId, forwarder.name).equals(key)) return forwarder;
  } catch {
    // Reported below.
  }
  const text = key.toString('latin1');
  const fleetId = JSON.stringify(text.slice(0, fleetIdLength));
  throw new OperatorError(
    `The record of forwarder ${JSON.stringify(text.slice(fleetIdLength))} of fleet ${fleetId} in the data folder is damaged. Restore the folder from a backup.`,
  );
}
