import { ApiError } from '../core/errors.ts';
import { fleetIdLength, fleetIdPattern, schemaNamePattern } from '../core/identity.ts';
import { unpack } from '../storage/lmdb/environment/codec.ts';
import type { StoredTable } from '../storage/lmdb/environment/database-file.ts';
import type { Findings } from '../storage/lmdb/environment/findings.ts';
import { unpackClaimToken } from './claim-token.ts';
import type { Fleet } from './fleet.ts';
import { checkSchema, schemaKinds } from './schemas/schema.ts';
import { unpackToken } from './tokens.ts';

/** Counts of the registry; the fleets by id. */
export interface RegistryCounts {
  fleets: ReadonlySet<string>;
  schemas: number;
}

/** Yields the records of a table, reporting a missing or damaged one. */
export type RegistryEntries = (table: string) => Iterable<{ key: Buffer; text: string; value: Buffer }>;

/** Reads the registry of a stopped server. */
export function registryEntries(
  tables: ReadonlyMap<string, StoredTable>,
  findings: Findings,
  onRecord: () => void,
): RegistryEntries {
  return function* (name) {
    const table = tables.get(name);
    if (table === undefined) findings.add(`registry: there is no table ${name}`);
    const onDamage = (damage: Error): void => findings.add(`registry, ${name}: ${damage.message}`);
    for (const { key, value } of table?.entries(onDamage) ?? []) {
      onRecord();
      yield { key, text: key.toString('latin1'), value };
    }
  };
}

/** Verifies fleets, schemas and tokens, compiling each schema. Features verify their own declarations. */
export function verifyRegistry(entries: RegistryEntries, findings: Findings): RegistryCounts {
  const fleets = new Set<string>();
  let schemas = 0;
  for (const { text, value } of entries('fleets')) {
    if (isFleet(text, value)) fleets.add(text);
    else findings.add(`registry, fleets: ${printableKey(text)} does not decode`);
  }
  for (const { text, value } of entries('schemas')) {
    schemas += 1;
    const wrong = checkStoredSchema(text, value, fleets);
    if (wrong !== undefined) findings.add(`registry, schemas: ${printableKey(text)} ${wrong}`);
  }
  for (const [table, unpackOne] of [
    ['tokens', unpackToken],
    ['claimTokens', unpackClaimToken],
  ] as const) {
    for (const { text, value } of entries(table)) {
      const wrong = checkStored(() => unpackOne(value), text, fleets);
      if (wrong !== undefined) findings.add(`registry, ${table}: ${printableKey(text)} ${wrong}`);
    }
  }
  return { fleets, schemas };
}

function isFleet(fleetId: string, value: Buffer): boolean {
  try {
    const fleet = unpack(value) as Partial<Fleet>;
    return (
      fleetIdPattern.test(fleetId) &&
      fleet.fleetId === fleetId &&
      typeof fleet.name === 'string' &&
      typeof fleet.createdAtMs === 'number'
    );
  } catch {
    return false;
  }
}

/** Checks that a token decodes, has its own id, and belongs to an existing fleet or to none. */
function checkStored(
  read: () => { id: string; fleetId: string | null },
  key: string,
  fleets: ReadonlySet<string>,
): string | undefined {
  try {
    const { id, fleetId } = read();
    if (id !== key) return 'does not decode';
    return fleetId === null || fleets.has(fleetId) ? undefined : 'is of a fleet that does not exist';
  } catch {
    return 'does not decode';
  }
}

function checkStoredSchema(text: string, value: Buffer, fleets: ReadonlySet<string>): string | undefined {
  const isKey =
    schemaKinds[Number(text[fleetIdLength])] !== undefined &&
    schemaNamePattern.test(text.slice(fleetIdLength + 1));
  if (!isKey) return 'is not the key of a schema';
  if (!fleets.has(text.slice(0, fleetIdLength))) return 'is of a fleet that does not exist';
  try {
    // Its cost was checked when it was put, by the limit of that time.
    checkSchema(JSON.parse(value.toString('utf8')) as Record<string, unknown>, Number.MAX_SAFE_INTEGER);
    return undefined;
  } catch (error) {
    return error instanceof ApiError ? 'does not compile' : 'is not JSON';
  }
}

export function printableKey(text: string): string {
  return /^[\w-]{1,300}$/.test(text) ? text : `key ${Buffer.from(text, 'latin1').toString('hex', 0, 64)}`;
}
