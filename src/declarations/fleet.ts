import { ApiError } from '../core/errors.ts';
import { CheckBudget, parseWithin } from './schema-budgets/check-budget.ts';
import { CompileBudget } from './schema-budgets/compile-budget.ts';
import type { JsonObject } from './schemas/payload.ts';
import { Schema, type SchemaKind, type SchemaWatch } from './schemas/schema.ts';

/** A fleet as declared. Absent limits default to the configuration's. */
export interface Fleet {
  fleetId: string;
  name: string;
  createdAtMs: number;
  mailboxMailsMax?: number;
  /** Bytes of its mail that waits, all shards together. */
  mailBytesMax?: number;
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

/** A limit that a fleet's own tokens set, so never beyond that of all fleets. 0, or undefined, is none. */
export function lowestLimit(own = 0, ofAll = 0): number | undefined {
  return (own > 0 && ofAll > 0 ? Math.min(own, ofAll) : own || ofAll) || undefined;
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

/** One fleet with all its schemas: immutable. */
export interface FleetSnapshot {
  fleet: Fleet;
  schemas: readonly SchemaText[];
}

/** A change of a fleet, for who has applied all before it: its schemas are up to 64 MB, which no change is to send. */
export interface FleetUpdate {
  fleet: Fleet;
  put: readonly SchemaText[];
  deleted: readonly Pick<SchemaText, 'kind' | 'name'>[];
}

/** The update that leads from one snapshot of a fleet to a later one, which shares with it what is unchanged. */
export function updateOf(before: FleetSnapshot | undefined, { fleet, schemas }: FleetSnapshot): FleetUpdate {
  if (fleet.deletingSinceMs !== undefined) return { fleet, put: [], deleted: [] };
  const known = new Set(before?.schemas);
  const left = new Set(schemas.map(({ kind, name }) => `${kind}/${name}`));
  const deleted = [...known].filter(({ kind, name }) => !left.has(`${kind}/${name}`));
  return {
    fleet,
    put: schemas.filter((schema) => !known.has(schema)),
    deleted: deleted.map(({ kind, name }) => ({ kind, name })),
  };
}

/** A fleet on the request path. */
class FleetView {
  #fleet: Fleet;
  readonly #schemas: Readonly<Record<SchemaKind, Map<string, Schema>>>;
  readonly #compilations: CompileBudget;
  readonly checks: CheckBudget;
  readonly #options: FleetsOptions;

  constructor(fleet: Fleet, options: FleetsOptions) {
    this.#fleet = fleet;
    this.#options = options;
    this.#schemas = { datapoint: new Map(), message: new Map(), mail: new Map(), reply: new Map() };
    this.checks = new CheckBudget(options.settings);
    this.#compilations = new CompileBudget(options.settings, this.checks, options.defersCompiling);
  }

  get fleet(): Fleet {
    return this.#fleet;
  }

  update({ fleet, put, deleted }: FleetUpdate): void {
    this.#fleet = fleet;
    for (const { kind, name } of deleted) this.#schemas[kind].delete(name);
    for (const schema of put) this.#put(schema);
  }

  #put({ kind, name, text, disabled }: SchemaText): void {
    const known = this.schema(kind, name);
    // Putting it again enables it, even with the same text.
    if (known?.text === text && known.disabled === disabled) return;
    const { fleetId } = this.#fleet;
    const { settings, onDisabled } = this.#options;
    const watch = {
      settings,
      compilations: this.#compilations,
      checks: this.checks,
      onDisabled: (reason: string) => onDisabled({ fleetId, kind, name, text, disabled: reason }),
    };
    this.#schemas[kind].set(name, new Schema(text, watch, disabled));
  }

  schema(kind: SchemaKind, name: string): Schema | undefined {
    return this.#schemas[kind].get(name);
  }

  get checksReplies(): boolean {
    return this.#schemas.reply.size > 0;
  }
}

/** Shared by all records of a sync that are refused for it. */
const schemaNotFound = new ApiError('schema_not_found');

/** The fleets known to one thread, changed one update at a time; without those that are being deleted. */
export class Fleets {
  readonly #views = new Map<string, FleetView>();
  readonly #options: FleetsOptions;

  constructor(snapshots: readonly FleetSnapshot[], options: FleetsOptions) {
    this.#options = options;
    for (const snapshot of snapshots) this.update(updateOf(undefined, snapshot));
  }

  update(update: FleetUpdate): void {
    const { fleet } = update;
    if (fleet.deletingSinceMs !== undefined) {
      this.#views.delete(fleet.fleetId);
      return;
    }
    const view = this.#views.get(fleet.fleetId) ?? new FleetView(fleet, this.#options);
    view.update(update);
    this.#views.set(fleet.fleetId, view);
  }

  get(fleetId: string): Fleet | undefined {
    return this.#views.get(fleetId)?.fleet;
  }

  *all(): Generator<Fleet> {
    for (const { fleet } of this.#views.values()) yield fleet;
  }

  /** Budget of the time that checks of a fleet take of this thread. */
  checksOf(fleetId: string): CheckBudget | undefined {
    return this.#views.get(fleetId)?.checks;
  }

  /** Parses a body that a device of the fleet sent. @throws ApiError unavailable, and what `parse` throws. */
  parse<T>(fleetId: string, bytes: Buffer, parse: (bytes: Buffer) => T): T {
    return parseWithin(this.checksOf(fleetId), bytes, parse);
  }

  /** @throws ApiError schema_not_found (D2, D12). */
  schema(fleetId: string, kind: SchemaKind, name: string): Schema {
    const schema = this.#views.get(fleetId)?.schema(kind, name);
    if (schema === undefined) throw schemaNotFound;
    return schema;
  }

  /** Checks mail if it has a schema, which is optional (D12). */
  checkMail(fleetId: string, name: string, payload: JsonObject, bytes: number): void {
    this.#views.get(fleetId)?.schema('mail', name)?.check(payload, bytes);
  }

  /** The schema of the replies to a mail, which is optional (D31). */
  replySchema(fleetId: string, name: string): Schema | undefined {
    return this.#views.get(fleetId)?.schema('reply', name);
  }

  /** True if some replies of the fleet have a schema: without, nobody needs the name of the mail. */
  checksReplies(fleetId: string): boolean {
    return this.#views.get(fleetId)?.checksReplies === true;
  }
}
