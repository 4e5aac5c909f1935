import { ApiError } from '../core/errors.ts';
import { CompileBudget } from './schemas/compile-budget.ts';
import type { JsonObject } from './schemas/payload.ts';
import { Schema, type SchemaKind, type SchemaWatch } from './schemas/schema.ts';

/** A fleet as declared. Absent limits default to the configuration's. */
export interface Fleet {
  fleetId: string;
  name: string;
  createdAtMs: number;
  mailboxMailsMax?: number;
  mailTtlSeconds?: number;
  /** Absent: no limit (D16). */
  mailRequeuesMax?: number;
  requestsPerSecondMax?: number;
  deviceRequestsPerSecondMax?: number;
  deviceBytesPerSecondMax?: number;
  activeSeconds?: number;
  logRetentionSeconds?: number;
  /** Bytes of its records in the log, all shards together. */
  logBytesMax?: number;
  /** Set once it is being deleted: then devices find no such fleet, and nothing is created in it. */
  deletingSinceMs?: number;
  /** Set once it is deleted: nothing is left of it but its id, which is taken while the logs have its records. */
  retiredAtMs?: number;
}

export interface SchemaText {
  kind: SchemaKind;
  name: string;
  /** The JSON Schema as put. */
  text: string;
  /** Why it is disabled, until it is put again or the server restarts. */
  disabled?: string;
}

/** A schema that a thread has disabled. */
export interface DisabledSchema extends SchemaText {
  fleetId: string;
  disabled: string;
}

/** Limits and notification of a thread's schemas. */
export interface FleetsOptions {
  settings: SchemaWatch['settings'];
  /** True if a fleet that compiles many schemas at once is told to retry; else its bodies wait. */
  defersCompiling: boolean;
  onDisabled(schema: DisabledSchema): void;
}

/** One fleet with all its schemas: immutable, and sent to the workers on every change. */
export interface FleetSnapshot {
  fleet: Fleet;
  schemas: readonly SchemaText[];
}

/** A fleet on the request path. */
class FleetView {
  readonly fleet: Fleet;
  readonly #schemas: Readonly<Record<SchemaKind, Map<string, Schema>>>;
  readonly #budget: CompileBudget;

  /** Reuses unchanged schemas of `before`, so that a change recompiles just one. */
  constructor(
    { fleet, schemas }: FleetSnapshot,
    before: FleetView | undefined,
    { settings, defersCompiling, onDisabled }: FleetsOptions,
  ) {
    this.fleet = fleet;
    this.#budget = before === undefined ? new CompileBudget(settings, defersCompiling) : before.#budget;
    this.#schemas = { datapoint: new Map(), message: new Map(), mail: new Map() };
    for (const { kind, name, text, disabled } of schemas) {
      const known = before?.schema(kind, name);
      // Putting it again enables it, even with the same text.
      const isSame = known?.text === text && known.disabled === disabled;
      const onSchemaDisabled = (reason: string): void =>
        onDisabled({ fleetId: fleet.fleetId, kind, name, text, disabled: reason });
      const schema = isSame
        ? known
        : new Schema(text, { settings, budget: this.#budget, onDisabled: onSchemaDisabled }, disabled);
      this.#schemas[kind].set(name, schema);
    }
  }

  schema(kind: SchemaKind, name: string): Schema | undefined {
    return this.#schemas[kind].get(name);
  }
}

/** The fleets known to one thread, replaced one snapshot at a time; without those that are being deleted. */
export class Fleets {
  readonly #views = new Map<string, FleetView>();
  readonly #options: FleetsOptions;

  constructor(snapshots: readonly FleetSnapshot[], options: FleetsOptions) {
    this.#options = options;
    for (const snapshot of snapshots) this.put(snapshot);
  }

  put(snapshot: FleetSnapshot): void {
    const { fleetId, deletingSinceMs } = snapshot.fleet;
    if (deletingSinceMs !== undefined) this.#views.delete(fleetId);
    else this.#views.set(fleetId, new FleetView(snapshot, this.#views.get(fleetId), this.#options));
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

  /** Checks mail if it has a schema, which is optional (D12). */
  checkMail(fleetId: string, name: string, payload: JsonObject, bytes: number): void {
    this.#views.get(fleetId)?.schema('mail', name)?.check(payload, bytes);
  }
}
