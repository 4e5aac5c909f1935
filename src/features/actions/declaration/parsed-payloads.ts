import { type CheckBudget, parseWithin } from '../../../declarations/schema-budgets/check-budget.ts';
import { type JsonObject, parseJson } from '../../../declarations/schemas/payload.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';

/** Payloads that are kept: of what is read of a log at once, and a tenth of the memory that they take when parsed. */
const bytesMax = 2_097_152;

/**
 * What the filters of actions have parsed while the logs are polled once: all actions of a fleet look at the same records,
 * one after another. Beyond its room the oldest is parsed again.
 */
export class ParsedPayloads {
  readonly #byRecord = new Map<string, { value: JsonObject; bytes: number }>();
  #bytes = 0;

  /** `checks`: the budget of its fleet. @throws ApiError invalid_json; unavailable while the fleet has to wait. */
  of({ id, payload }: StoredRecord, checks: CheckBudget | undefined): JsonObject {
    const key = id.toString('latin1');
    const known = this.#byRecord.get(key);
    if (known !== undefined) return known.value;
    const value = parseWithin(checks, payload, parseJson) as JsonObject;
    this.#byRecord.set(key, { value, bytes: payload.length });
    this.#bytes += payload.length;
    for (const [oldest, { bytes }] of this.#byRecord) {
      if (this.#bytes <= bytesMax) break;
      this.#byRecord.delete(oldest);
      this.#bytes -= bytes;
    }
    return value;
  }

  clear(): void {
    this.#byRecord.clear();
    this.#bytes = 0;
  }
}
