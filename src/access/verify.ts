import type { StoredTable } from '../store/database-file.ts';
import type { Findings } from '../store/findings.ts';
import { unpackEntry } from './audit-records.ts';

/** Walks the audit log of a server that is stopped. */
export function verifyAudit(
  tables: ReadonlyMap<string, StoredTable>,
  findings: Findings,
  onRecord: () => void,
): void {
  const onDamage = (damage: Error): void => findings.add(`control, audit: ${damage.message}`);
  for (const { key, value } of tables.get('audit')?.entries(onDamage) ?? []) {
    onRecord();
    try {
      unpackEntry(key, value);
    } catch {
      findings.add(`control, audit: key ${key.toString('hex', 0, 64)} does not decode`);
    }
  }
}
