import { type AuditRow, audit } from '../engine/tables.ts';
import { pack, unpack } from '../store/codec.ts';
import type { Environment } from '../store/environment.ts';
import { behind, type Part } from './part.ts';

const numberBytes = 6;

/**
 * The audit log, whose entries keep their numbers. In a data folder book 1, number 6 → the time and the rest of the
 * entry; in the database the rest is JSON.
 */
export function auditPart(environment: Environment): Part<AuditRow> {
  const table = environment.table('audit');
  return {
    name: 'audit',
    table: audit,
    compared: ({ number, book, at_ms: atMs, entry }) => [number, book, atMs, inUtf8(entry)],
    *read(after) {
      for (const { key, value } of table.getRange(behind(after))) {
        const { timeMs, ...content } = unpack(value) as { timeMs: number };
        const entry = JSON.stringify(content);
        const row = { number: key.readUIntBE(1, numberBytes), book: key.readUInt8(0), at_ms: timeMs, entry };
        yield { key, rows: [row] };
      }
    },
    write(written) {
      for (const { number, book, at_ms: timeMs, entry } of written) {
        const key = Buffer.alloc(1 + numberBytes);
        key.writeUInt8(book, 0);
        key.writeUIntBE(number, 1, numberBytes);
        table.putSync(key, pack({ timeMs, ...JSON.parse(entry) }));
      }
    },
  };
}

/** JSON of the outside may escape halves of characters, which a data folder keeps as one that says so. */
function inUtf8(entry: string): string {
  return JSON.stringify(
    JSON.parse(entry, (_, value) => (typeof value === 'string' ? Buffer.from(value).toString() : value)),
  );
}
