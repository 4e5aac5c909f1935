import { ApiError } from '../core/errors.ts';
import { checkRows, checkTable, type StoppedStore } from '../storage/tables/check-rows.ts';
import { claimTokenTable } from './claim-token.ts';
import { holdTable } from './declared-hold.ts';
import { fleetTable, schemaTable } from './fleet-tables.ts';
import { checkSchema } from './schemas/check-schema.ts';
import { tokenTable } from './tokens.ts';

/** Counts of the registry; the fleets by id. */
export interface RegistryCounts {
  fleets: ReadonlySet<string>;
  schemas: number;
}

/** Fault of a declaration whose fleet does not exist. */
export const ofNoFleet = 'is of a fleet that does not exist';

/** Verifies fleets, schemas, tokens and the hold, compiling each schema. Features verify their own declarations. */
export function verifyRegistry(registry: StoppedStore): RegistryCounts {
  const fleets = new Set<string>();
  for (const { key } of checkRows(registry, fleetTable)) fleets.add(key[0]);
  let schemas = 0;
  for (const { key, value, report } of checkRows(registry, schemaTable)) {
    schemas += 1;
    const wrong = fleets.has(key[0]) ? wrongWithSchema(value) : ofNoFleet;
    if (wrong !== undefined) report(wrong);
  }
  const tokens = [...checkRows(registry, tokenTable)];
  const parents = new Set<string | null>([null, ...tokens.map(({ value }) => value.id)]);
  for (const { value, report } of tokens) {
    if (value.fleetId !== null && !fleets.has(value.fleetId)) report(ofNoFleet);
    if (value.session !== null && !parents.has(value.session.parentId)) {
      report('is a session of a token that does not exist');
    }
  }
  for (const { value, report } of checkRows(registry, claimTokenTable)) {
    if (!fleets.has(value.fleetId)) report(ofNoFleet);
  }
  checkTable(registry, holdTable);
  return { fleets, schemas };
}

const largestLimits = { schemaStepsMax: 1_000_000, schemaPatternStatesMax: 1_000_000 };

function wrongWithSchema(text: string): string | undefined {
  try {
    // Its cost was checked when it was put, by the limit of that time. The largest limits there are, so that the
    // verification ends.
    checkSchema(JSON.parse(text) as Record<string, unknown>, largestLimits);
    return undefined;
  } catch (error) {
    return error instanceof ApiError ? 'does not compile' : 'is not JSON';
  }
}
