import { isDeviceKey } from '../../core/identity.ts';
import { isUuid, uuidBytesLength } from '../../core/uuid.ts';
import type { StoredTable } from '../../storage/lmdb/environment/database-file.ts';
import type { Findings } from '../../storage/lmdb/environment/findings.ts';
import { decodeLetter } from './dead-letters.ts';
import { forwarderTables } from './tables.ts';

/** Walks the dead letters of all forwarders, of a server that is stopped. */
export function verifyLetters(
  tables: ReadonlyMap<string, StoredTable>,
  findings: Findings,
  onRecord: () => void,
): void {
  for (const name of forwarderTables) {
    // Not there before the first start of a version that has forwarders.
    const onDamage = (damage: Error): void => findings.add(`forwarders, ${name}: ${damage.message}`);
    for (const { key, value } of tables.get(name)?.entries(onDamage) ?? []) {
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
