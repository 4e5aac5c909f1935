import { ApiError } from '../core/errors.ts';
import type { JsonObject } from './schemas/payload.ts';
import { Schema, type SchemaKind, type SchemaWatch } from './schemas/schema.ts';

/** What an operator declares of a fleet. Absent limits are the configuration's. */
export interface Fleet {
  fleetId: string;
  name: string;
  createdAtMs: number;
  mailboxMailsMax?: number;
  mailTtlSeconds?: number;
  /** Absent: mail may be requeued any number of times (D16). */
  mailRequeuesMax?: number;
  requestsPerSecondMax?: number;
  deviceRequestsPerSecondMax?: number;
  deviceBytesPerSecondMax?: number;
  activeSeconds?: number;
  logRetentionSeconds?: number;
  /** Bytes of its records in the log, over all shards. */
  logBytesMax?: number;
}

export interface SchemaText {
  kind: SchemaKind;
  name: string;
  /** The JSON Schema as it was put. */
  text: string;
  /** Why no body is held against it, until it is put again or the server started anew. */
  disabled?: string;
}

/** A schema that a thread has found to be one that no body may be held against. */
export interface DisabledSchema extends SchemaText {
  fleetId: string;
  disabled: string;
}

/** What the schemas of a thread go by, and whom they tell. */
export interface FleetsOptions {
  limits: SchemaWatch['limits'];
  onDisabled(schema: DisabledSchema): void;
}

/** One fleet with all its schemas: immutable, and what a worker is sent when anything of it changes. */
export interface FleetSnapshot {
  fleet: Fleet;
  schemas: readonly SchemaText[];
}

/** A fleet as the request path sees it. */
class FleetView {
  readonly fleet: Fleet;
  readonly #schemas: Readonly<Record<SchemaKind, Map<string, Schema>>>;

  /** Takes over from `before` what did not change, so that a change of one schema recompiles that one. */
  constructor(
    { fleet, schemas }: FleetSnapshot,
    before: FleetView | undefined,
    { limits, onDisabled }: FleetsOptions,
  ) {
    this.fleet = fleet;
    this.#schemas = { datapoint: new Map(), message: new Map(), mail: new Map() };
    for (const { kind, name, text, disabled } of schemas) {
      const known = before?.schema(kind, name);
      // Put again, it is enabled again, though its text is the same.
      const isSame = known?.text === text && known.disabled === disabled;
      const tell = (reason: string): void =>
        onDisabled({ fleetId: fleet.fleetId, kind, name, text, disabled: reason });
      const schema = isSame ? known : new Schema(text, { limits, onDisabled: tell }, disabled);
      this.#schemas[kind].set(name, schema);
    }
  }

  schema(kind: SchemaKind, name: string): Schema | undefined {
    return this.#schemas[kind].get(name);
  }
}

/** The fleets as one thread knows them, replaced one snapshot at a time. */
export class Fleets {
  readonly #views = new Map<string, FleetView>();
  readonly #options: FleetsOptions;

  constructor(snapshots: readonly FleetSnapshot[], options: FleetsOptions) {
    this.#options = options;
    for (const snapshot of snapshots) this.put(snapshot);
  }

  put(snapshot: FleetSnapshot): void {
    const { fleetId } = snapshot.fleet;
    this.#views.set(fleetId, new FleetView(snapshot, this.#views.get(fleetId), this.#options));
  }

  get(fleetId: string): Fleet | undefined {
    return this.#views.get(fleetId)?.fleet;
  }

  *all(): Generator<Fleet> {
    for (const { fleet } of this.#views.values()) yield fleet;
  }

  /** @throws ApiError schema_not_found (D2, D12). */
  schema(fleetId: string, kind: SchemaKind, name: string): Schema {
    const schema = this.#views.get(fleetId)?.schema(kind, name);
    if (schema === undefined) throw new ApiError('schema_not_found');
    return schema;
  }

  /** Mail needs no schema; where one is defined it holds (D12). */
  checkMail(fleetId: string, name: string, payload: JsonObject, bytes: number): void {
    this.#views.get(fleetId)?.schema('mail', name)?.check(payload, bytes);
  }
}
