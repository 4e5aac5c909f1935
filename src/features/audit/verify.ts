import type { StoredTable } from '../../storage/lmdb/environment/database-file.ts';
import type { Findings } from '../../storage/lmdb/environment/findings.ts';
import { auditTables, isOwnedKey, unpackEntry } from './audit-records.ts';

/** Walks the audit log of a server that is stopped. */
export function verifyAudit(
  tables: ReadonlyMap<string, StoredTable>,
  findings: Findings,
  onRecord: () => void,
): void {
  const onDamage = (damage: Error): void => findings.add(`control, audit: ${damage.message}`);
  for (const name of auditTables) {
    if (!tables.has(name)) findings.add(`control: there is no table ${name}`);
  }
  let entries = 0;
  for (const { key, value } of tables.get('audit')?.entries(onDamage) ?? []) {
    onRecord();
    entries += 1;
    try {
      unpackEntry(key, value);
    } catch {
      findings.add(`control, audit: key ${key.toString('hex', 0, 64)} does not decode`);
    }
  }
  let owned = 0;
  for (const { key } of tables.get('auditOwners')?.entries(onDamage) ?? []) {
    onRecord();
    owned += 1;
    if (!isOwnedKey(key))
      findings.add(`control, auditOwners: key ${key.toString('hex', 0, 64)} does not decode`);
  }
  if (owned !== entries)
    findings.add(`control, auditOwners: ${owned} keys for ${entries} entries of the audit log`);
}
