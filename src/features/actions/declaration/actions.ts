import type { Settings } from '../../../core/config/settings.ts';
import { ApiError } from '../../../core/errors.ts';
import { formatUuid, generateUuid } from '../../../core/uuid.ts';
import { NamedDeclarations } from '../../../declarations/named-declarations.ts';
import { refuseDamaged } from '../../../declarations/refuse-damaged.ts';
import type { Registry } from '../../../declarations/registry.ts';
import { Collection } from '../../../storage/tables/collection.ts';
import type { TableStore } from '../../../storage/tables/table-store.ts';
import type { Action, ActionVersion, RunningVersion } from './action.ts';
import { actionTable, type VersionKey, versionTable } from './action-records.ts';

export interface ActionsLimits {
  settings: Settings<{ actionsPerFleetMax: number }>;
}

/** Versions retained for rollback: enough that one of them works, given that each may take 256 KB. */
const versionsKept = 10;

/** Changes of an action besides its code. Null: the configured default. */
export interface ActionChange {
  enabled?: boolean;
  runsPerSecondMax?: number | null;
}

/** The actions of all fleets. What runs of the current versions is in memory; whole versions are read on demand. */
export class Actions extends NamedDeclarations<Action> {
  readonly #stored: TableStore;
  readonly #versionTable: Collection<VersionKey, ActionVersion>;
  readonly #current = new WeakMap<Action, RunningVersion>();

  /** @throws OperatorError also when a current version is damaged. */
  constructor(stored: TableStore, registry: Registry, { settings }: ActionsLimits) {
    super(stored, registry, 'action', actionTable, () => settings.current.actionsPerFleetMax);
    this.#stored = stored;
    this.#versionTable = new Collection(stored, versionTable);
    for (const action of this.all()) this.#currentOf(action);
  }

  /** What runs of the current version. @throws ApiError action_not_found, also if it was deleted and created again since. */
  current(action: Action): RunningVersion {
    const declared = this.declared(action);
    if (declared === undefined) throw new ApiError('action_not_found');
    return this.#currentOf(declared);
  }

  /** @throws ApiError action_version_not_found. */
  version(fleetId: string, name: string, number: number): ActionVersion {
    const { id, versions } = this.get(fleetId, name);
    this.#stored.refresh();
    const isKept = versions.some((one) => one.number === number);
    const version = isKept ? this.#versionTable.get([id, number]) : undefined;
    if (version === undefined) throw new ApiError('action_version_not_found');
    return version;
  }

  /**
   * Creates an action, or adds a version to one; `by` is the name of who does. If that enables it, it begins at `logEnds`.
   * @throws ApiError invalid_action for an invalid name, limit_reached.
   */
  async put(
    fleetId: string,
    name: string,
    version: Omit<ActionVersion, 'number' | 'createdAtMs'>,
    logEnds: readonly number[],
    change: ActionChange = {},
    by?: string,
  ): Promise<{ action: Action; isNew: boolean }> {
    let isNew = false;
    const put = await this.inForce(async () => {
      this.registry.fleet(fleetId);
      const before = this.find(fleetId, name);
      isNew = before === undefined;
      const createdAtMs = Date.now();
      const start = before ?? this.#newAction(fleetId, name, logEnds, createdAtMs);
      const number = (start.versions.at(-1)?.number ?? 0) + 1;
      const current = { ...version, number, createdAtMs };
      const versions = [...start.versions, { number, createdAtMs, ...(by !== undefined && { by }) }].slice(
        -versionsKept,
      );
      const action = { ...changed(start, change, logEnds), version: number, versions };
      const dropped = start.versions.filter((one) => !versions.includes(one));
      this.#current.set(action, runningOf(current));
      return this.store(action, () => {
        this.#versionTable.put([action.id, number], current);
        for (const old of dropped) this.#versionTable.delete([action.id, old.number]);
      });
    });
    return { action: put, isNew };
  }

  /** If that enables it, it begins at `logEnds`. @throws ApiError action_not_found. */
  change(fleetId: string, name: string, change: ActionChange, logEnds: readonly number[]): Promise<Action> {
    return this.inForce(async () => this.store(changed(this.get(fleetId, name), change, logEnds)));
  }

  /** Makes a retained version the current one, under its own number. @throws ApiError action_version_not_found. */
  rollback(fleetId: string, name: string, number: number): Promise<Action> {
    return this.inForce(async () => {
      this.version(fleetId, name, number);
      return this.store({ ...this.get(fleetId, name), version: number });
    });
  }

  override delete(fleetId: string, name: string): Promise<Action> {
    return super.delete(fleetId, name, ({ id }) => void this.#versionTable.deletePrefix([id]));
  }

  #newAction(fleetId: string, name: string, logEnds: readonly number[], createdAtMs: number): Action {
    this.checkNew(fleetId, name);
    const id = formatUuid(generateUuid());
    const begin = beginAt(logEnds);
    return { id, fleetId, name, createdAtMs, enabled: true, begin, version: 0, versions: [] };
  }

  #currentOf(action: Action): RunningVersion {
    const known = this.#current.get(action);
    if (known !== undefined) return known;
    const { id, fleetId, name, version } = action;
    const stored = this.#read(id, version);
    if (stored === undefined) return refuseDamaged('action')(actionTable.key.encode([fleetId, name]));
    const running = runningOf(stored);
    this.#current.set(action, running);
    return running;
  }

  #read(id: string, number: number): ActionVersion | undefined {
    try {
      this.#stored.refresh();
      return this.#versionTable.get([id, number]);
    } catch {
      return undefined;
    }
  }
}

function runningOf({ source: _, tests: __, ...running }: ActionVersion): RunningVersion {
  return running;
}

function beginAt(logEnds: readonly number[]): Action['begin'] {
  return { id: formatUuid(generateUuid()), logEnds };
}

function changed(
  action: Action,
  { enabled, runsPerSecondMax }: ActionChange,
  logEnds: readonly number[],
): Action {
  const { runsPerSecondMax: before, ...rest } = action;
  const rate = runsPerSecondMax === undefined ? before : runsPerSecondMax;
  return {
    ...rest,
    ...(enabled !== undefined && { enabled }),
    ...(enabled === true && !action.enabled && { begin: beginAt(logEnds) }),
    ...(rate !== undefined && rate !== null && { runsPerSecondMax: rate }),
  };
}
