import { ApiError, isUnavailable } from '../../../core/errors.ts';
import { deviceIdOf, fleetIdOf } from '../../../core/identity.ts';
import type { CheckBudget } from '../../../declarations/schema-budgets/check-budget.ts';
import { Schema, unwatched } from '../../../declarations/schemas/schema.ts';
import type { Device } from '../../../domain/devices/device.ts';
import type { RunKind, StoredRecord } from '../../../domain/records/record.ts';
import type { Action, ActionFilter, RunningVersion } from './action.ts';
import { ParsedPayloads } from './parsed-payloads.ts';

export interface TriggerWatch {
  /** Budget of the time that the fleet's checks take of this thread. */
  checks?: CheckBudget | undefined;
  /** Shared with other triggers that look at the same records. */
  payloads?: ParsedPayloads | undefined;
  /** Called once, with the reason, when the payload filter is disabled. */
  onDisabled?: ((reason: string) => void) | undefined;
}

/** Decides which records an action runs for, without running any code. */
export class Trigger {
  readonly #fleetId: string;
  readonly #names: ReadonlySet<string>;
  readonly #devices: ReadonlySet<string> | undefined;
  readonly #tags: ActionFilter['tags'];
  readonly #payload: Schema | undefined;
  readonly #checks: CheckBudget | undefined;
  readonly #payloads: ParsedPayloads;

  constructor(
    action: Action,
    { on, filter }: RunningVersion,
    settings = unwatched.settings,
    { checks, payloads = new ParsedPayloads(), onDisabled = unwatched.onDisabled }: TriggerWatch = {},
  ) {
    this.#fleetId = action.fleetId;
    this.#names = new Set(on.map(({ kind, schema }) => `${kind}:${schema}`));
    this.#devices = filter.devices && new Set(filter.devices);
    this.#tags = filter.tags;
    const watch = { settings, onDisabled, ...(checks && { checks }) };
    this.#payload = filter.payload && new Schema(JSON.stringify(filter.payload), watch);
    this.#checks = checks;
    this.#payloads = payloads;
  }

  /** True once a check of its payload filter took too long: there is no telling for which records it runs. */
  get isDisabled(): boolean {
    return this.#payload?.disabled !== undefined;
  }

  /** True while the checks of its fleet have taken more time than they may, or none can be made: records wait in the log. */
  get mustWait(): boolean {
    if (this.#payload === undefined) return false;
    return this.isDisabled || (this.#checks !== undefined && this.#checks.waitSeconds > 0);
  }

  /** True if the record is from its fleet and of one of its schemas, regardless of the filter. */
  listensTo({ device, kind, schema }: StoredRecord): boolean {
    return this.#names.has(`${kind}:${schema}`) && fleetIdOf(device) === this.#fleetId;
  }

  /** True if the filter needs the tags of the device that sent the record. */
  asksForTags(record: StoredRecord): boolean {
    return this.#tags !== undefined && this.listensTo(record);
  }

  /**
   * Checks the cheapest first: nearly all records fail by name. `sender`: the device as it is now, if asked for.
   * @throws ApiError unavailable where its payload filter is disabled.
   */
  matches(record: StoredRecord, sender: Device | undefined): boolean {
    const { device } = record;
    if (!this.listensTo(record)) return false;
    if (this.#devices !== undefined && !this.#devices.has(deviceIdOf(device))) return false;
    if (this.#payload !== undefined && !this.#matchesSchema(this.#payload, record)) return false;
    const tags = this.#tags;
    return tags === undefined || sender?.tags.some((tag) => tags.includes(tag)) === true;
  }

  #matchesSchema(schema: Schema, record: StoredRecord): boolean {
    try {
      schema.check(this.#payloads.of(record, this.#checks), record.payload.length);
      return true;
    } catch (error) {
      if (error instanceof ApiError && !isUnavailable(error)) return false;
      throw error;
    }
  }
}

/** Narrows the kind: actions run only for what devices send. */
export function sentKind({ kind }: StoredRecord): RunKind {
  if (kind === 'receipt') throw new Error('an action runs for a receipt');
  return kind;
}
