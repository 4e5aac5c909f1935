import type { AuditBook, AuditEntry } from '../admin/audit-log.ts';
import { auditBooks } from '../admin/audit-log.ts';
import { pack, unpack } from '../store/codec.ts';
import { isContent } from './audit-entry.ts';

const keyBytes = 7;

/** book, number: the entries of a book lie together, oldest first. */
export function keyOf(book: number, number: number): Buffer {
  const key = Buffer.alloc(keyBytes);
  key.writeUInt8(book, 0);
  key.writeUIntBE(number, 1, 6);
  return key;
}

export function numberOf(key: Buffer): number {
  return key.readUIntBE(1, 6);
}

export function packEntry({ number: _, book: __, ...rest }: AuditEntry): Buffer {
  return pack(rest);
}

/** @throws Error for what is no entry. */
export function unpackEntry(key: Buffer, value: Buffer): AuditEntry {
  const book: AuditBook | undefined = auditBooks[key[0] ?? auditBooks.length];
  const rest = unpack(value);
  const { timeMs } = (rest ?? {}) as Partial<AuditEntry>;
  const isEntry =
    key.length === keyBytes && book !== undefined && typeof timeMs === 'number' && isContent(rest);
  if (!isEntry) throw new Error('not an entry of the audit log');
  return { ...rest, timeMs, number: numberOf(key), book };
}
