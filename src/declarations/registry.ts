import { ApiError, OperatorError } from '../core/errors.ts';
import { fleetIdLength } from '../core/identity.ts';
import { pack, unpack } from '../storage/lmdb/environment/codec.ts';
import type { StoredChange, StoredTables, Table } from '../storage/lmdb/environment/stored-tables.ts';
import { Changes } from './changes.ts';
import type { DisabledSchema, Fleet, FleetSnapshot, SchemaText } from './fleet.ts';
import { parseJson } from './schemas/payload.ts';
import { checkSchema, type SchemaKind, schemaKinds } from './schemas/schema.ts';

export const registryTables = [
  'fleets',
  'schemas',
  'actions',
  'actionVersions',
  'tokens',
  'forwarders',
  'claimTokens',
] as const;

export interface RegistryLimits {
  fleetsMax: number;
  schemasPerFleetMax: number;
  schemaStepsMax: number;
}

/** Changes of a fleet: an absent field stays, null restores the configuration's default. */
export interface FleetChange {
  name?: string;
  mailboxMailsMax?: number | null;
  mailTtlSeconds?: number | null;
  mailRequeuesMax?: number | null;
  requestsPerSecondMax?: number | null;
  deviceRequestsPerSecondMax?: number | null;
  deviceBytesPerSecondMax?: number | null;
  activeSeconds?: number | null;
  logRetentionSeconds?: number | null;
  logBytesMax?: number | null;
}

/** fleet id, kind, name: keeps a fleet's schemas together. */
function schemaKey(fleetId: string, kind: SchemaKind, name: string): Buffer {
  return Buffer.from(`${fleetId}${schemaKinds.indexOf(kind)}${name}`, 'latin1');
}

/** @throws OperatorError: without it the fleet's devices would be told that it does not exist. */
function readFleet(fleetId: string, bytes: Buffer): Fleet {
  try {
    return unpack(bytes) as Fleet;
  } catch {
    throw new OperatorError(
      `The record of fleet ${JSON.stringify(fleetId)} in the data folder is damaged. Restore the folder from a backup.`,
    );
  }
}

/**
 * All declarations, on the main thread: stored in their own environment, with all of them in memory. A change settles
 * once it is durable and every worker has it, so that a request sent afterwards sees it.
 */
export class Registry {
  readonly #stored: StoredTables;
  readonly #fleetTable: Table;
  readonly #schemaTable: Table;
  readonly #limits: RegistryLimits;
  readonly #changes: Changes;
  readonly #fleets = new Map<string, FleetSnapshot>();
  #publish: (snapshot: FleetSnapshot) => Promise<void> = async () => {};

  constructor(stored: StoredTables, limits: RegistryLimits) {
    this.#stored = stored;
    this.#fleetTable = stored.table('fleets');
    this.#schemaTable = stored.table('schemas');
    this.#limits = limits;
    this.#changes = new Changes(stored);
    for (const { key, value } of this.#fleetTable.getRange({})) this.#takeFleet(key, value);
    for (const { key, value } of this.#schemaTable.getRange({})) this.#takeSchema(key, value);
  }

  /** Applies changes from another node; settles when every worker has them. */
  async follow(changes: readonly StoredChange[]): Promise<void> {
    const fleetIds = new Set<string>();
    for (const { name, key, value } of changes) {
      // Fleets are never removed.
      if (name === 'fleets' && value !== undefined) fleetIds.add(this.#takeFleet(key, value));
    }
    for (const { name, key, value } of changes) {
      if (name === 'schemas') fleetIds.add(this.#takeSchema(key, value));
    }
    const changed = [...fleetIds].flatMap((fleetId) => this.#fleets.get(fleetId) ?? []);
    await Promise.all(changed.map((snapshot) => this.#publish(snapshot)));
  }

  /** Sets the function that publishes every change before it settles. */
  onChange(publish: (snapshot: FleetSnapshot) => Promise<void>): void {
    this.#publish = publish;
  }

  snapshots(): FleetSnapshot[] {
    return [...this.#fleets.values()].sort((a, b) => (a.fleet.fleetId < b.fleet.fleetId ? -1 : 1));
  }

  /** @throws ApiError fleet_not_found. */
  fleet(fleetId: string): FleetSnapshot {
    const snapshot = this.#fleets.get(fleetId);
    if (snapshot === undefined) throw new ApiError('fleet_not_found');
    return snapshot;
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
      if (this.#fleets.has(fleet.fleetId)) throw new ApiError('already_exists');
      if (this.#fleets.size >= this.#limits.fleetsMax) {
        throw new ApiError('limit_reached', {
          msg: 'Too many fleets (fleetsMax). Raise the limit.',
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

  /** Returns whether the schema is new. @throws ApiError invalid_json, invalid_schema, limit_reached. */
  putSchema(fleetId: string, kind: SchemaKind, name: string, bytes: Buffer): Promise<boolean> {
    return this.#changes.run(async () => {
      const snapshot = this.fleet(fleetId);
      const value = parseJson(bytes);
      if (typeof value !== 'object' || value === null || Array.isArray(value)) {
        throw new ApiError('invalid_schema', { msg: 'A schema is a JSON object.' });
      }
      checkSchema(value as Record<string, unknown>, this.#limits.schemaStepsMax);
      const others = snapshot.schemas.filter((one) => one.kind !== kind || one.name !== name);
      if (others.length >= this.#limits.schemasPerFleetMax) {
        throw new ApiError('limit_reached', {
          msg: 'Too many schemas in this fleet (schemasPerFleetMax). Delete some.',
        });
      }
      await this.#changes.write(() => {
        this.#schemaTable.putSync(schemaKey(fleetId, kind, name), bytes);
      });
      const schemas = [...others, { kind, name, text: bytes.toString('utf8') }];
      await this.#replace({ ...snapshot, schemas });
      return others.length === snapshot.schemas.length;
    });
  }

  /** @throws ApiError schema_not_found. */
  deleteSchema(fleetId: string, kind: SchemaKind, name: string): Promise<void> {
    return this.#changes.run(async () => {
      const snapshot = this.fleet(fleetId);
      const schema = this.schema(fleetId, kind, name);
      await this.#changes.write(() => {
        this.#schemaTable.removeSync(schemaKey(fleetId, kind, name));
      });
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
    await this.#changes.settled();
    await this.#stored.close();
  }

  /** Returns the fleet's id. */
  #takeFleet(key: Buffer, value: Buffer): string {
    const fleetId = key.toString('latin1');
    const schemas = this.#fleets.get(fleetId)?.schemas ?? [];
    this.#fleets.set(fleetId, { fleet: readFleet(fleetId, value), schemas });
    return fleetId;
  }

  /** Without a value the schema is removed. Returns the id of its fleet. */
  #takeSchema(key: Buffer, value: Buffer | undefined): string {
    const text = key.toString('latin1');
    const fleetId = text.slice(0, fleetIdLength);
    const snapshot = this.#fleets.get(fleetId);
    const kind = schemaKinds[Number(text[fleetIdLength])];
    if (snapshot === undefined || kind === undefined) return fleetId;
    const name = text.slice(fleetIdLength + 1);
    const schemas = snapshot.schemas.filter((one) => one.kind !== kind || one.name !== name);
    if (value !== undefined) schemas.push({ kind, name, text: value.toString('utf8') });
    this.#fleets.set(fleetId, { ...snapshot, schemas });
    return fleetId;
  }

  async #storeFleet(snapshot: FleetSnapshot): Promise<void> {
    const key = Buffer.from(snapshot.fleet.fleetId, 'latin1');
    await this.#changes.write(() => {
      this.#fleetTable.putSync(key, pack(snapshot.fleet));
    });
    await this.#replace(snapshot);
  }

  async #replace(snapshot: FleetSnapshot): Promise<void> {
    this.#fleets.set(snapshot.fleet.fleetId, snapshot);
    await this.#publish(snapshot);
  }
}
