import { fleetIdLength } from '../../core/identity.ts';
import { type AuditBook, type AuditEntry, auditBooks } from '../../domain/audit-log.ts';
import { checkTable, type StoppedStore } from '../../storage/tables/check-rows.ts';
import { nothing, packed } from '../../storage/tables/codec.ts';
import type { TableLayout } from '../../storage/tables/collection.ts';
import { KeyCodec, type KeyField, positionField } from '../../storage/tables/key-codec.ts';
import { isContent } from './audit-entry.ts';

const bookField: KeyField<AuditBook> = {
  bytes: 1,
  encode: (book) => Buffer.of(auditBooks.indexOf(book)),
  decode: (bytes) => {
    const book = auditBooks[bytes.readUInt8()];
    if (book === undefined) throw new Error('not a book of the audit log');
    return book;
  },
};

/** Zeros follow an owner that is not a fleet id. */
const ownerField: KeyField<string> = {
  bytes: fleetIdLength,
  encode: (owner) => {
    const bytes = Buffer.alloc(fleetIdLength);
    bytes.write(owner, 'latin1');
    return bytes;
  },
  decode: (bytes) => bytes.toString('latin1').replace(/\0+$/, ''),
};

export type EntryKey = [book: AuditBook, number: number];
export type StoredEntry = Omit<AuditEntry, 'book' | 'number'>;

/** The entries of a book, oldest first. */
export const auditTable: TableLayout<EntryKey, StoredEntry> = {
  name: 'audit',
  key: new KeyCodec(bookField, positionField),
  value: packed(
    (entry) => typeof entry.timeMs === 'number' && typeof entry.owner === 'string' && isContent(entry),
  ),
};

export type OwnedKey = [book: AuditBook, owner: string, number: number];

/** One for each entry, to find the oldest of an owner. */
export const auditOwnerTable: TableLayout<OwnedKey, undefined> = {
  name: 'auditOwners',
  key: new KeyCodec(bookField, ownerField, positionField),
  value: nothing,
};

/** Verifies the audit log of a stopped server. */
export function verifyAudit(control: StoppedStore): void {
  const entries = checkTable(control, auditTable);
  const owned = checkTable(control, auditOwnerTable);
  if (owned !== entries)
    control.findings.add(`control, auditOwners: ${owned} keys for ${entries} entries of the audit log`);
}
