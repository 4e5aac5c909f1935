import type { Fleets } from '../../declarations/fleet.ts';
import type { CheckAllowance } from '../../declarations/schema-budgets/check-budget.ts';
import { asDatapoint, asMessage, emptyPayload, isEmpty } from '../../declarations/schemas/payload.ts';
import type { IngestKind } from '../../domain/records/record.ts';

/** The content of a record as sent: its value, and the bytes it was parsed from. */
export interface SentPayload {
  kind: IngestKind;
  schema: string;
  value: unknown;
  bytes: Buffer;
}

/**
 * Checks a payload, then its schema, and returns what is stored. The schema of an empty message must exist, but is not
 * applied (section 2). `allowance`: of the body that it shares with others.
 * @throws ApiError invalid_body, schema_not_found, schema_mismatch, unavailable
 */
export function checkedPayload(
  { kind, schema: name, value, bytes }: SentPayload,
  fleetId: string,
  fleets: Fleets,
  allowance?: CheckAllowance,
): Buffer {
  const object = kind === 'datapoint' ? asDatapoint(value) : asMessage(value);
  const schema = fleets.schema(fleetId, kind, name);
  if (object === undefined) return emptyPayload;
  if (kind === 'datapoint' || !isEmpty(object)) schema.check(object, bytes.length, allowance);
  return bytes;
}
