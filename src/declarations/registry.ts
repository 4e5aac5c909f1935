import type { Settings } from '../core/config/settings.ts';
import { ApiError } from '../core/errors.ts';
import { Collection } from '../storage/tables/collection.ts';
import type { StoredChange, TableStore } from '../storage/tables/table-store.ts';
import { Changes } from './changes.ts';
import {
  type DisabledSchema,
  type Fleet,
  type FleetSnapshot,
  type FleetUpdate,
  type SchemaText,
  updateOf,
} from './fleet.ts';
import { fleetTable, type SchemaKey, schemaTable } from './fleet-tables.ts';
import { refuseDamaged } from './refuse-damaged.ts';
import { SchemaChecker, type SchemaCheckerSettings } from './schema-checks/schema-checker.ts';
import { parseSchema } from './schemas/payload.ts';
import type { SchemaKind } from './schemas/schema.ts';
import { tooLargeText } from './schemas/schema-patterns.ts';

export interface RegistryLimits {
  settings: Settings<SchemaCheckerSettings & { fleetsMax: number; schemasPerFleetMax: number }>;
}

/** Changes of a fleet: an absent field stays, null restores the configuration's default. */
export interface FleetChange {
  name?: string;
  mailboxMailsMax?: number | null;
  mailBytesMax?: number | null;
  mailTtlSeconds?: number | null;
  mailRequeuesMax?: number | null;
  requestsPerSecondMax?: number | null;
  deviceRequestsPerSecondMax?: number | null;
  deviceBytesPerSecondMax?: number | null;
  activeSeconds?: number | null;
  logRetentionSeconds?: number | null;
  logBytesMax?: number | null;
}

/** Schemas removed in one transaction. */
const removedMax = 1_000;

function deletingOf({ fleet, schemas }: FleetSnapshot): FleetSnapshot {
  return { fleet: { ...fleet, deletingSinceMs: Date.now() }, schemas };
}

function isTakenBy({ deletingSinceMs, retiredAtMs }: Fleet): { msg: string } | undefined {
  if (retiredAtMs !== undefined) {
    const at = new Date(retiredAtMs).toISOString();
    return {
      msg: `The fleet of this id was deleted at ${at}, and not all of its records have ended (logRetentionSeconds). Choose another id, or retry later.`,
    };
  }
  if (deletingSinceMs === undefined) return undefined;
  return { msg: 'The fleet of this id is still being deleted. Choose another id, or retry later.' };
}

/** A key that no schema has: verification tells of it. */
function skip(): void {}

/**
 * All declarations, on the main thread: stored in their own environment, with all of them in memory. A change settles
 * once it is durable and every worker has it, so that a request sent afterwards sees it.
 */
export class Registry {
  readonly checker: SchemaChecker;
  readonly #stored: TableStore;
  readonly #fleetTable: Collection<[string], Fleet>;
  readonly #schemaTable: Collection<SchemaKey, string>;
  readonly #limits: RegistryLimits;
  readonly #changes: Changes;
  readonly #fleets = new Map<string, FleetSnapshot>();
  /** Deleted fleets whose ids are taken. */
  readonly #retired = new Map<string, Fleet>();
  /** Fleets as the threads know them. */
  readonly #published = new Map<string, FleetSnapshot>();
  #send: (update: FleetUpdate) => Promise<void> = async () => {};

  constructor(stored: TableStore, limits: RegistryLimits) {
    this.#stored = stored;
    this.#fleetTable = new Collection(stored, fleetTable);
    this.#schemaTable = new Collection(stored, schemaTable);
    this.#limits = limits;
    this.#changes = new Changes(stored);
    this.checker = new SchemaChecker(limits.settings);
    for (const [, fleet] of this.#fleetTable.entries([], {}, refuseDamaged('fleet'))) this.#takeFleet(fleet);
    for (const [key, text] of this.#schemaTable.entries([], {}, skip)) this.#takeSchema(key, text);
  }

  /** Applies changes from another node; settles when every worker has them. */
  async follow(changes: readonly StoredChange[]): Promise<void> {
    const fleetIds = new Set<string>();
    // Published too: this node may have missed that they were being deleted.
    const removed: FleetSnapshot[] = [];
    for (const [[fleetId], fleet] of this.#fleetTable.changed(changes, refuseDamaged('fleet'))) {
      const before = this.#fleets.get(fleetId);
      if (fleet !== undefined) this.#takeFleet(fleet);
      else this.#forgetFleet(fleetId);
      if (before !== undefined && !this.#fleets.has(fleetId)) removed.push(deletingOf(before));
      fleetIds.add(fleetId);
    }
    for (const [key, text] of this.#schemaTable.changed(changes, skip)) {
      this.#takeSchema(key, text);
      fleetIds.add(key[0]);
    }
    const changed = [...fleetIds].flatMap((fleetId) => this.#fleets.get(fleetId) ?? []);
    await Promise.all([...removed, ...changed].map((snapshot) => this.#publish(snapshot)));
  }

  /**
   * Sets the function that publishes every change before it settles, to threads that have started with these snapshots;
   * and publishes what has changed since.
   */
  async onChange(
    snapshots: readonly FleetSnapshot[],
    send: (update: FleetUpdate) => Promise<void>,
  ): Promise<void> {
    this.#send = send;
    for (const snapshot of snapshots) this.#published.set(snapshot.fleet.fleetId, snapshot);
    const removed = snapshots.filter(({ fleet }) => !this.#fleets.has(fleet.fleetId)).map(deletingOf);
    const changed = this.snapshots().filter((one) => this.#published.get(one.fleet.fleetId) !== one);
    await Promise.all([...removed, ...changed].map((snapshot) => this.#publish(snapshot)));
  }

  /**
   * Has a fleet that another node has just made be there as well: whoever made it may ask here next.
   * @throws ApiError unavailable
   */
  async lookFor(fleetId: string): Promise<void> {
    if (!this.#fleets.has(fleetId)) await this.#stored.catchUp();
  }

  snapshots(): FleetSnapshot[] {
    return [...this.#fleets.values()].sort((a, b) => (a.fleet.fleetId < b.fleet.fleetId ? -1 : 1));
  }

  /** Ids of the fleets that are being deleted. */
  deleting(): string[] {
    const all = [...this.#fleets.values()];
    return all.flatMap(({ fleet }) => (fleet.deletingSinceMs === undefined ? [] : [fleet.fleetId]));
  }

  /** Ids of deleted fleets that are taken. */
  retired(): string[] {
    return [...this.#retired.keys()];
  }

  /** True if there is such a fleet to work in. */
  has(fleetId: string): boolean {
    const snapshot = this.#fleets.get(fleetId);
    return snapshot !== undefined && snapshot.fleet.deletingSinceMs === undefined;
  }

  /** A fleet to work in. @throws ApiError fleet_not_found, also while it is being deleted. */
  fleet(fleetId: string): FleetSnapshot {
    const snapshot = this.#declared(fleetId);
    if (snapshot.fleet.deletingSinceMs === undefined) return snapshot;
    throw new ApiError('fleet_not_found', { msg: 'This fleet is being deleted.' });
  }

  /** A fleet to look at, even while it is being deleted. @throws ApiError fleet_not_found. */
  declared(fleetId: string): Fleet {
    return this.#declared(fleetId).fleet;
  }

  /** @throws ApiError schema_not_found. */
  schema(fleetId: string, kind: SchemaKind, name: string): SchemaText {
    const schema = this.fleet(fleetId).schemas.find((one) => one.kind === kind && one.name === name);
    if (schema === undefined) throw new ApiError('schema_not_found');
    return schema;
  }

  /** @throws ApiError already_exists, limit_reached. */
  createFleet(fleet: Fleet): Promise<void> {
    return this.#changes.run(async () => {
      const taken = this.#fleets.get(fleet.fleetId)?.fleet ?? this.#retired.get(fleet.fleetId);
      if (taken !== undefined) throw new ApiError('already_exists', isTakenBy(taken));
      if (this.#fleets.size + this.#retired.size >= this.#limits.settings.current.fleetsMax) {
        throw new ApiError('limit_reached', {
          msg: 'Too many fleets, deleted ones with records among them (fleetsMax). Raise the limit.',
        });
      }
      await this.#storeFleet({ fleet, schemas: [] });
    });
  }

  changeFleet(fleetId: string, change: FleetChange): Promise<Fleet> {
    return this.#changes.run(async () => {
      const snapshot = this.fleet(fleetId);
      const merged = { ...snapshot.fleet, ...change };
      const fields = Object.entries(merged).filter(([, value]) => value !== null && value !== undefined);
      const fleet = Object.fromEntries(fields) as unknown as Fleet;
      await this.#storeFleet({ ...snapshot, fleet });
      return fleet;
    });
  }

  /** Marks a fleet as being deleted, which is for good. @throws ApiError fleet_not_found. */
  deleteFleet(fleetId: string): Promise<Fleet> {
    return this.#changes.run(async () => {
      const snapshot = this.#declared(fleetId);
      if (snapshot.fleet.deletingSinceMs !== undefined) return snapshot.fleet;
      const deleting = deletingOf(snapshot);
      await this.#storeFleet(deleting);
      return deleting.fleet;
    });
  }

  /** Removes all of a fleet that is being deleted but its id, its schemas first; all else of it must be gone. */
  async retireFleet(fleetId: string): Promise<void> {
    let removed: number;
    const { createdAtMs, deletingSinceMs = Date.now() } = this.declared(fleetId);
    const retired = { fleetId, name: '', createdAtMs, deletingSinceMs, retiredAtMs: Date.now() };
    do {
      removed = await this.#changes.run(async () => {
        let schemas = 0;
        await this.#changes.write(() => {
          schemas = this.#schemaTable.deletePrefix([fleetId], removedMax);
          if (schemas < removedMax) this.#fleetTable.put([fleetId], retired);
        });
        return schemas;
      });
    } while (removed === removedMax);
    this.#takeFleet(retired);
  }

  /** Gives the id of a deleted fleet free. */
  async releaseFleet(fleetId: string): Promise<void> {
    await this.#changes.run(async () => {
      if (!this.#retired.has(fleetId)) return;
      await this.#changes.write(() => void this.#fleetTable.delete([fleetId]));
      this.#retired.delete(fleetId);
    });
  }

  /** Returns whether the schema is new. @throws ApiError invalid_json, invalid_schema, limit_reached, unavailable. */
  async putSchema(fleetId: string, kind: SchemaKind, name: string, bytes: Buffer): Promise<boolean> {
    this.fleet(fleetId);
    parseSchema(bytes);
    const text = bytes.toString('utf8');
    // Before its turn: other changes need not wait for it.
    await this.checker.check(fleetId, text);
    return this.#changes.run(async () => {
      const snapshot = this.fleet(fleetId);
      const others = snapshot.schemas.filter((one) => one.kind !== kind || one.name !== name);
      if (others.length >= this.#limits.settings.current.schemasPerFleetMax) {
        throw new ApiError('limit_reached', {
          msg: 'Too many schemas in this fleet (schemasPerFleetMax). Delete some.',
        });
      }
      await this.#changes.write(() => this.#schemaTable.put([fleetId, kind, name], text));
      const schemas = [...others, { kind, name, text }];
      await this.#replace({ ...snapshot, schemas });
      return others.length === snapshot.schemas.length;
    });
  }

  /** @throws ApiError schema_not_found. */
  deleteSchema(fleetId: string, kind: SchemaKind, name: string): Promise<void> {
    return this.#changes.run(async () => {
      const snapshot = this.fleet(fleetId);
      const schema = this.schema(fleetId, kind, name);
      await this.#changes.write(() => void this.#schemaTable.delete([fleetId, kind, name]));
      await this.#replace({ ...snapshot, schemas: snapshot.schemas.filter((one) => one !== schema) });
    });
  }

  /** Disables a schema on all threads until it is put again. Not stored. */
  disableSchema({ fleetId, kind, name, text, disabled }: DisabledSchema): Promise<void> {
    return this.#changes.run(async () => {
      const snapshot = this.#fleets.get(fleetId);
      const schema = snapshot?.schemas.find((one) => one.kind === kind && one.name === name);
      // It has been replaced meanwhile, or another thread was first.
      if (snapshot === undefined || schema?.text !== text || schema.disabled !== undefined) return;
      const schemas = snapshot.schemas.map((one) => (one === schema ? { ...one, disabled } : one));
      await this.#replace({ ...snapshot, schemas });
    });
  }

  async close(): Promise<void> {
    await this.checker.close();
    await this.#changes.settled();
    await this.#stored.close();
  }

  #declared(fleetId: string): FleetSnapshot {
    const snapshot = this.#fleets.get(fleetId);
    if (snapshot === undefined) throw new ApiError('fleet_not_found');
    return snapshot;
  }

  #takeFleet(fleet: Fleet): void {
    const { fleetId, retiredAtMs } = fleet;
    const schemas = this.#fleets.get(fleetId)?.schemas ?? [];
    this.#forgetFleet(fleetId);
    if (retiredAtMs !== undefined) this.#retired.set(fleetId, fleet);
    else this.#fleets.set(fleetId, { fleet, schemas });
  }

  #forgetFleet(fleetId: string): void {
    this.#fleets.delete(fleetId);
    this.#retired.delete(fleetId);
  }

  /** Without a text the schema is removed. */
  #takeSchema([fleetId, kind, name]: SchemaKey, text: string | undefined): void {
    const snapshot = this.#fleets.get(fleetId);
    if (snapshot === undefined) return;
    const schemas = snapshot.schemas.filter((one) => one.kind !== kind || one.name !== name);
    if (text !== undefined) schemas.push(this.#read(kind, name, text));
    this.#fleets.set(fleetId, { ...snapshot, schemas });
  }

  /** A stored schema. One from before its limits, whose patterns would hold up a worker, is disabled from the start. */
  #read(kind: SchemaKind, name: string, text: string): SchemaText {
    const tooLarge = tooLargeText(text, this.#limits.settings.current.schemaPatternStatesMax);
    return { kind, name, text, ...(tooLarge !== undefined && { disabled: tooLarge }) };
  }

  async #storeFleet(snapshot: FleetSnapshot): Promise<void> {
    const { fleet } = snapshot;
    await this.#changes.write(() => this.#fleetTable.put([fleet.fleetId], fleet));
    await this.#replace(snapshot);
  }

  async #replace(snapshot: FleetSnapshot): Promise<void> {
    this.#fleets.set(snapshot.fleet.fleetId, snapshot);
    await this.#publish(snapshot);
  }

  /** Sends updates in the order of the changes: in the turn of each. */
  #publish(snapshot: FleetSnapshot): Promise<void> {
    const { fleetId, deletingSinceMs } = snapshot.fleet;
    const update = updateOf(this.#published.get(fleetId), snapshot);
    if (deletingSinceMs === undefined) this.#published.set(fleetId, snapshot);
    else this.#published.delete(fleetId);
    return this.#send(update);
  }
}
