import type { AuditBook, AuditEntry, AuditQuery } from '../admin/audit-log.ts';
import { auditBooks } from '../admin/audit-log.ts';
import { pack, unpack } from '../store/codec.ts';

/** Greatest number of an entry. */
export const numberMax = 2 ** 48 - 1;
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
  const rest = unpack(value) as Partial<AuditEntry>;
  const isEntry =
    key.length === keyBytes &&
    book !== undefined &&
    typeof rest.timeMs === 'number' &&
    typeof rest.by?.kind === 'string' &&
    typeof rest.method === 'string' &&
    typeof rest.route === 'string' &&
    typeof rest.about === 'object' &&
    (rest.status === null || typeof rest.status === 'number');
  if (!isEntry) throw new Error('not an entry of the audit log');
  return { ...(rest as AuditEntry), number: numberOf(key), book };
}

export function matches({ by, about, timeMs }: AuditEntry, query: AuditQuery): boolean {
  const { fleetId, token, fromMs = Number.NEGATIVE_INFINITY, toMs = Number.POSITIVE_INFINITY } = query;
  if (fleetId !== undefined && about.fleet_id !== fleetId) return false;
  if (token !== undefined && (by.kind === 'bootstrap' ? 'bootstrap' : by.id) !== token) return false;
  return timeMs >= fromMs && timeMs < toMs;
}
