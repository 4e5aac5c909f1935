import { NamedDeclarations } from '../../../declarations/named-declarations.ts';
import type { Registry } from '../../../declarations/registry.ts';
import type { TableStore } from '../../../storage/tables/table-store.ts';
import type { Forwarder } from './forwarder.ts';
import { forwarderTable } from './forwarder-records.ts';

/** The forwarders of all fleets, and their secrets. */
export class Forwarders extends NamedDeclarations<Forwarder> {
  constructor(stored: TableStore, registry: Registry, limits: { forwardersPerFleetMax: number }) {
    super(stored, registry, 'forwarder', forwarderTable, () => limits.forwardersPerFleetMax);
  }

  /**
   * Adds a forwarder or replaces the one of that name by what `next` makes of it, which may be called more than once.
   * @throws ApiError fleet_not_found, invalid_forwarder, limit_reached; what `next` throws.
   */
  async put(
    fleetId: string,
    name: string,
    next: (known: Forwarder | undefined) => Forwarder,
  ): Promise<{ forwarder: Forwarder; isNew: boolean }> {
    let isNew = false;
    const forwarder = await this.inForce(async () => {
      const known = this.find(fleetId, name);
      isNew = known === undefined;
      if (isNew) this.checkNew(fleetId, name);
      return this.store(next(known));
    });
    return { forwarder, isNew };
  }

  /** As `put`. @throws ApiError forwarder_not_found; what `next` throws. */
  change(fleetId: string, name: string, next: (known: Forwarder) => Forwarder): Promise<Forwarder> {
    return this.inForce(async () => this.store(next(this.get(fleetId, name))));
  }
}
