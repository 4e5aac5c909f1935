import { isDeviceKey } from '../../core/identity.ts';
import { isUuid, uuidBytesLength } from '../../core/uuid.ts';
import { printableKey, type RegistryEntries } from '../../declarations/verify.ts';
import type { StoredTable } from '../../storage/lmdb/environment/database-file.ts';
import type { Findings } from '../../storage/lmdb/environment/findings.ts';
import { decodeLetter } from './dead-letters.ts';
import { keyOfForwarder, unpackForwarder } from './declaration/forwarder-records.ts';
import { forwarderTables } from './tables.ts';

/** Checks the dead letters of all forwarders on a stopped server. */
export function verifyLetters(
  tables: ReadonlyMap<string, StoredTable>,
  findings: Findings,
  onRecord: () => void,
): void {
  for (const name of forwarderTables) {
    const table = tables.get(name);
    if (table === undefined) findings.add(`forwarders: table ${name} is missing`);
    const onDamage = (damage: Error): void => findings.add(`forwarders, ${name}: ${damage.message}`);
    for (const { key, value } of table?.entries(onDamage) ?? []) {
      onRecord();
      if (isKey(key) && (name === 'forwarderLetters' ? isLetter(key, value) : isUuid(value))) continue;
      findings.add(`forwarders, ${name}: key ${key.toString('hex', 0, 64)} does not decode`);
    }
  }
}

function isKey(key: Buffer): boolean {
  return key.length === 2 * uuidBytesLength && isUuid(key) && isUuid(key.subarray(uuidBytesLength));
}

function isLetter(key: Buffer, value: Buffer): boolean {
  try {
    const { record, reason, deadAtMs } = decodeLetter(key, value);
    return isDeviceKey(record.device) && typeof reason === 'string' && Number.isFinite(deadAtMs);
  } catch {
    return false;
  }
}

/** Checks every forwarder; returns how many there are. */
export function verifyDeclaredForwarders(
  entries: RegistryEntries,
  fleets: ReadonlySet<string>,
  findings: Findings,
): number {
  let forwarders = 0;
  for (const { key, text, value } of entries('forwarders')) {
    forwarders += 1;
    const wrong = checkForwarder(key, value, fleets);
    if (wrong !== undefined) findings.add(`registry, forwarders: ${printableKey(text)} ${wrong}`);
  }
  return forwarders;
}

function checkForwarder(key: Buffer, value: Buffer, fleets: ReadonlySet<string>): string | undefined {
  try {
    const { fleetId, name } = unpackForwarder(value);
    if (!key.equals(keyOfForwarder(fleetId, name))) return 'is under the wrong key';
    return fleets.has(fleetId) ? undefined : 'belongs to a fleet that does not exist';
  } catch {
    return 'does not decode';
  }
}
