import { ApiError } from '../core/errors.ts';
import { schemaNamePattern } from '../core/identity.ts';
import { Collection, type TableLayout } from '../storage/tables/collection.ts';
import type { StoredChange, TableStore } from '../storage/tables/table-store.ts';
import { Changes } from './changes.ts';
import { refuseDamaged } from './refuse-damaged.ts';
import type { Registry } from './registry.ts';

/** A declaration of a fleet, found by its name: deleted and declared again, it has another id. */
interface Named {
  readonly id: string;
  readonly fleetId: string;
  readonly name: string;
}

/** Acts on one that was put, changed or deleted; settles when it has, or has to try again later. */
type Act<T> = (declared: T) => Promise<void>;

/**
 * The declarations of one kind in all fleets, on the main thread of every node: in the registry's tables and all in
 * memory. Any node may change them, and the work that they are about, on the leader, follows.
 */
export abstract class NamedDeclarations<T extends Named> {
  protected readonly registry: Registry;
  readonly #kind: 'action' | 'forwarder';
  readonly #table: Collection<[fleetId: string, name: string], T>;
  readonly #changes: Changes;
  readonly #perFleetMax: () => number;
  /** Declarations by fleet, then name. */
  readonly #fleets = new Map<string, Map<string, T>>();
  #act: Act<T> = async () => {};

  /** `stored` belongs to the registry, which closes it. @throws OperatorError when a record is damaged. */
  constructor(
    stored: TableStore,
    registry: Registry,
    kind: 'action' | 'forwarder',
    layout: TableLayout<[fleetId: string, name: string], T>,
    perFleetMax: () => number,
  ) {
    this.registry = registry;
    this.#kind = kind;
    this.#table = new Collection(stored, layout);
    this.#changes = new Changes(stored);
    this.#perFleetMax = perFleetMax;
    this.load();
  }

  /** Reads again all that is stored. Call before work that removes what is not declared. @throws OperatorError */
  load(): void {
    const stored = [...this.#table.entries([], {}, refuseDamaged(this.#kind))];
    this.#fleets.clear();
    for (const [, declared] of stored) this.#keep(declared);
  }

  /** Sets what acts on every change from now on, of this node or another; without it nothing does. */
  onChange(act: Act<T> = async () => {}): void {
    this.#act = act;
  }

  /** Applies changes from another node, without waiting for what acts on them. */
  follow(changes: readonly StoredChange[]): void {
    for (const [[fleetId, name], declared] of this.#table.changed(changes, refuseDamaged(this.#kind))) {
      const before = this.#fleets.get(fleetId)?.get(name);
      this.#fleets.get(fleetId)?.delete(name);
      if (declared !== undefined) this.#keep(declared);
      if (before !== undefined && before.id !== declared?.id) void this.#act(before);
      if (declared !== undefined) void this.#act(declared);
    }
  }

  all(): T[] {
    return [...this.#fleets.keys()].sort().flatMap((fleetId) => this.#ofFleet(fleetId));
  }

  /** Sorted by name. @throws ApiError fleet_not_found. */
  list(fleetId: string): T[] {
    this.registry.declared(fleetId);
    return this.#ofFleet(fleetId);
  }

  /** @throws ApiError fleet_not_found. */
  find(fleetId: string, name: string): T | undefined {
    this.registry.declared(fleetId);
    return this.#fleets.get(fleetId)?.get(name);
  }

  /** @throws ApiError fleet_not_found, action_not_found or forwarder_not_found. */
  get(fleetId: string, name: string): T {
    const declared = this.find(fleetId, name);
    if (declared === undefined) throw new ApiError(`${this.#kind}_not_found`);
    return declared;
  }

  /** As it is declared now; undefined if it was deleted, also if it was declared again since. */
  declared({ id, fleetId, name }: T): T | undefined {
    const known = this.#fleets.get(fleetId)?.get(name);
    return known?.id === id ? known : undefined;
  }

  /** Deletes one, and in the same transaction what else is stored of it. @throws ApiError as `get`. */
  delete(fleetId: string, name: string, deleteToo: (declared: T) => void = () => {}): Promise<T> {
    return this.inForce(async () => {
      const declared = this.get(fleetId, name);
      await this.#changes.write(() => {
        this.#table.delete([fleetId, name]);
        deleteToo(declared);
      });
      this.#fleets.get(fleetId)?.delete(name);
      return declared;
    });
  }

  /** Call before closing the registry, whose environment this writes to. */
  async close(): Promise<void> {
    await this.#changes.settled();
  }

  /** Runs a change, exclusively on all nodes. Settles once it is durable and, if this is the leader, acted on. */
  protected async inForce(change: () => Promise<T>): Promise<T> {
    const declared = await this.#changes.run(change);
    await this.#act(declared);
    return declared;
  }

  /** Call inside `inForce`, once. */
  protected async store(declared: T, storeToo: () => void = () => {}): Promise<T> {
    const { fleetId, name } = declared;
    await this.#changes.write(() => {
      this.#table.put([fleetId, name], declared);
      storeToo();
    });
    this.#keep(declared);
    return declared;
  }

  /** @throws ApiError fleet_not_found, invalid_action or invalid_forwarder for the name, limit_reached. */
  protected checkNew(fleetId: string, name: string): void {
    this.registry.fleet(fleetId);
    if (!schemaNamePattern.test(name)) {
      throw new ApiError(`invalid_${this.#kind}`, { msg: 'A name is 1 to 255 letters, digits, _ and -.' });
    }
    if ((this.#fleets.get(fleetId)?.size ?? 0) >= this.#perFleetMax()) {
      throw new ApiError('limit_reached', {
        msg: `Too many ${this.#kind}s in this fleet (${this.#kind}sPerFleetMax). Delete one first.`,
      });
    }
  }

  #ofFleet(fleetId: string): T[] {
    const known = [...(this.#fleets.get(fleetId)?.values() ?? [])];
    return known.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  #keep(declared: T): void {
    const { fleetId, name } = declared;
    const fleet = this.#fleets.get(fleetId) ?? new Map<string, T>();
    this.#fleets.set(fleetId, fleet.set(name, declared));
  }
}
