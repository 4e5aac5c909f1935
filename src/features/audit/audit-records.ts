import { fleetIdLength } from '../../core/identity.ts';
import { type AuditBook, type AuditEntry, auditBooks } from '../../domain/audit-log.ts';
import { pack, unpack } from '../../storage/lmdb/environment/codec.ts';
import type { StoredTable } from '../../storage/lmdb/environment/database-file.ts';
import type { Findings } from '../../storage/lmdb/environment/findings.ts';
import { isContent } from './audit-entry.ts';

/** Verifies the audit log of a stopped server. */
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

/**
 * audit: book 1, number 6 → the entry; the entries of a book are contiguous, oldest first.
 * auditOwners: book 1, owner 8, number 6 → nothing; one per entry, to find the oldest of an owner.
 */
export const auditTables = ['audit', 'auditOwners'] as const;

const keyBytes = 7;
const ownerAt = 1;
const ownedKeyBytes = keyBytes + fleetIdLength;

export function keyOf(book: number, number: number): Buffer {
  const key = Buffer.alloc(keyBytes);
  key.writeUInt8(book, 0);
  key.writeUIntBE(number, 1, 6);
  return key;
}

/** Pads with zeros an owner that is not a fleet id. */
export function ownedKeyOf(book: number, owner: string, number: number): Buffer {
  const key = Buffer.alloc(ownedKeyBytes);
  key.writeUInt8(book, 0);
  key.write(owner, ownerAt, fleetIdLength, 'latin1');
  key.writeUIntBE(number, ownerAt + fleetIdLength, 6);
  return key;
}

export function ownerOf(ownedKey: Buffer): string {
  return ownedKey.toString('latin1', ownerAt, ownerAt + fleetIdLength).replace(/\0+$/, '');
}

/** Reads the number from a key of either table. */
export function numberOf(key: Buffer): number {
  return key.readUIntBE(key.length - 6, 6);
}

export function packEntry({ number: _, book: __, ...rest }: AuditEntry): Buffer {
  return pack(rest);
}

/** @throws Error if it is not an entry. */
export function unpackEntry(key: Buffer, value: Buffer): AuditEntry {
  const book: AuditBook | undefined = auditBooks[key[0] ?? auditBooks.length];
  const rest = unpack(value);
  const { timeMs, owner } = (rest ?? {}) as Partial<AuditEntry>;
  const isEntry =
    key.length === keyBytes &&
    book !== undefined &&
    typeof timeMs === 'number' &&
    typeof owner === 'string' &&
    isContent(rest);
  if (!isEntry) throw new Error('not an entry of the audit log');
  return { ...rest, timeMs, owner, number: numberOf(key), book };
}

/** Whether it is a valid key of `auditOwners`. */
export function isOwnedKey(key: Buffer): boolean {
  return key.length === ownedKeyBytes && (key[0] ?? auditBooks.length) < auditBooks.length;
}
