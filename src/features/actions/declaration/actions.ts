import type { Settings } from '../../../core/config/settings.ts';
import { ApiError } from '../../../core/errors.ts';
import { schemaNamePattern } from '../../../core/identity.ts';
import { formatUuid, generateUuid, parseUuid } from '../../../core/uuid.ts';
import { Changes } from '../../../declarations/changes.ts';
import { refuseDamaged } from '../../../declarations/refuse-damaged.ts';
import type { Registry } from '../../../declarations/registry.ts';
import { Collection } from '../../../storage/tables/collection.ts';
import type { TableStore } from '../../../storage/tables/table-store.ts';
import type { Action, ActionVersion } from './action.ts';
import { type ActionKey, actionTable, type VersionKey, versionTable } from './action-records.ts';

export interface ActionsLimits {
  settings: Settings<{ actionsPerFleetMax: number }>;
}

/** Versions retained for rollback: enough that one of them works, given that each may take 256 KB. */
const versionsKept = 10;

interface Known {
  action: Action;
  current: ActionVersion;
}

/** Changes of an action besides its code. Null: the configured default. */
export interface ActionChange {
  enabled?: boolean;
  runsPerSecondMax?: number | null;
}

/**
 * The actions of all fleets, on the main thread, stored in the registry's environment. Current versions are in memory;
 * older ones are read on demand. A change settles once it is on disk.
 */
export class Actions {
  readonly #stored: TableStore;
  readonly #actionTable: Collection<ActionKey, Action>;
  readonly #versionTable: Collection<VersionKey, ActionVersion>;
  readonly #registry: Registry;
  readonly #limits: ActionsLimits;
  readonly #changes: Changes;
  /** By fleet id, then name. */
  readonly #fleets = new Map<string, Map<string, Known>>();

  /** `stored` belongs to the registry, which closes it. */
  constructor(stored: TableStore, registry: Registry, limits: ActionsLimits) {
    this.#stored = stored;
    this.#actionTable = new Collection(stored, actionTable);
    this.#versionTable = new Collection(stored, versionTable);
    this.#registry = registry;
    this.#limits = limits;
    this.#changes = new Changes(stored);
    for (const [key, action] of this.#actionTable.entries([], {}, refuseDamaged('action'))) {
      this.#keep({ action, current: this.#currentOf(key, action) });
    }
  }

  all(): Action[] {
    return [...this.#fleets.keys()].sort().flatMap((fleetId) => this.#listed(fleetId));
  }

  /** Sorted by name. @throws ApiError fleet_not_found. */
  list(fleetId: string): Action[] {
    this.#registry.declared(fleetId);
    return this.#listed(fleetId);
  }

  /** @throws ApiError fleet_not_found, action_not_found. */
  get(fleetId: string, name: string): Action {
    return this.#known(fleetId, name).action;
  }

  /** The current version. @throws ApiError action_not_found, also if it was deleted and created again since. */
  current({ id, fleetId, name }: Action): ActionVersion {
    const known = this.#known(fleetId, name);
    if (known.action.id !== id) throw new ApiError('action_not_found');
    return known.current;
  }

  /** @throws ApiError action_version_not_found. */
  version(fleetId: string, name: string, number: number): ActionVersion {
    const { action, current } = this.#known(fleetId, name);
    if (number === current.number) return current;
    this.#stored.refresh();
    const isKept = action.versions.some((one) => one.number === number);
    const version = isKept ? this.#versionTable.get([action.id, number]) : undefined;
    if (version === undefined) throw new ApiError('action_version_not_found');
    return version;
  }

  /**
   * Creates an action, or adds a version to one. `id` applies to a new action only: if the name was taken meanwhile,
   * the result has another.
   * @throws ApiError invalid_action for an invalid name, limit_reached.
   */
  put(
    fleetId: string,
    name: string,
    version: Omit<ActionVersion, 'number' | 'createdAtMs'>,
    { id = formatUuid(generateUuid()), ...change }: ActionChange & { id?: string } = {},
  ): Promise<{ action: Action; isNew: boolean }> {
    return this.#changes.run(async () => {
      this.#registry.fleet(fleetId);
      const before = this.#fleets.get(fleetId)?.get(name)?.action;
      const createdAtMs = Date.now();
      const start = before ?? this.#newAction(fleetId, name, id, createdAtMs);
      const number = (start.versions.at(-1)?.number ?? 0) + 1;
      const current = { ...version, number, createdAtMs };
      const versions = [...start.versions, { number, createdAtMs }].slice(-versionsKept);
      const action = { ...changed(start, change), version: number, versions };
      const dropped = start.versions.filter((one) => !versions.includes(one));
      await this.#store({ action, current }, () => {
        this.#versionTable.put([action.id, number], current);
        for (const old of dropped) this.#versionTable.delete([action.id, old.number]);
      });
      return { action, isNew: before === undefined };
    });
  }

  /** @throws ApiError action_not_found. */
  change(fleetId: string, name: string, change: ActionChange): Promise<Action> {
    return this.#changes.run(async () => {
      const known = this.#known(fleetId, name);
      const action = changed(known.action, change);
      await this.#store({ ...known, action });
      return action;
    });
  }

  /** Makes a retained version the current one, under its own number. @throws ApiError action_version_not_found. */
  rollback(fleetId: string, name: string, number: number): Promise<Action> {
    return this.#changes.run(async () => {
      const current = this.version(fleetId, name, number);
      const action = { ...this.get(fleetId, name), version: number };
      await this.#store({ action, current });
      return action;
    });
  }

  /** Returns the action as it was. @throws ApiError action_not_found. */
  delete(fleetId: string, name: string): Promise<Action> {
    return this.#changes.run(async () => {
      const action = this.get(fleetId, name);
      await this.#changes.write(() => {
        this.#actionTable.delete([fleetId, name]);
        this.#versionTable.deletePrefix([action.id]);
      });
      this.#fleets.get(fleetId)?.delete(name);
      return action;
    });
  }

  /** Call before closing the registry, whose environment this writes to. */
  async close(): Promise<void> {
    await this.#changes.settled();
  }

  #newAction(fleetId: string, name: string, id: string, createdAtMs: number): Action {
    if (!schemaNamePattern.test(name)) {
      throw new ApiError('invalid_action', { msg: 'An action name is 1 to 255 letters, digits, _ and -.' });
    }
    if (parseUuid(id) === undefined) throw new Error('the id of an action is a UUIDv7');
    if ((this.#fleets.get(fleetId)?.size ?? 0) >= this.#limits.settings.current.actionsPerFleetMax) {
      throw new ApiError('limit_reached', {
        msg: 'Too many actions in this fleet (actionsPerFleetMax). Delete one first.',
      });
    }
    return { id, fleetId, name, createdAtMs, enabled: true, version: 0, versions: [] };
  }

  #known(fleetId: string, name: string): Known {
    this.#registry.declared(fleetId);
    const known = this.#fleets.get(fleetId)?.get(name);
    if (known === undefined) throw new ApiError('action_not_found');
    return known;
  }

  #listed(fleetId: string): Action[] {
    const known = [...(this.#fleets.get(fleetId)?.values() ?? [])];
    return known.map(({ action }) => action).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  #keep(known: Known): void {
    const { fleetId, name } = known.action;
    const fleet = this.#fleets.get(fleetId) ?? new Map<string, Known>();
    this.#fleets.set(fleetId, fleet.set(name, known));
  }

  async #store(known: Known, applyToo: () => void = () => {}): Promise<void> {
    const { fleetId, name } = known.action;
    await this.#changes.write(() => {
      this.#actionTable.put([fleetId, name], known.action);
      applyToo();
    });
    this.#keep(known);
  }

  #currentOf(key: ActionKey, { id, version }: Action): ActionVersion {
    try {
      const current = this.#versionTable.get([id, version]);
      if (current !== undefined) return current;
    } catch {
      // Refused below.
    }
    return refuseDamaged('action')(actionTable.key.encode(key));
  }
}

function changed(action: Action, { enabled, runsPerSecondMax }: ActionChange): Action {
  const { runsPerSecondMax: before, ...rest } = action;
  const rate = runsPerSecondMax === undefined ? before : runsPerSecondMax;
  return {
    ...rest,
    ...(enabled !== undefined && { enabled }),
    ...(rate !== undefined && rate !== null && { runsPerSecondMax: rate }),
  };
}
