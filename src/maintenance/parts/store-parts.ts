import { pack, unpack } from '../../storage/lmdb/environment/codec.ts';
import type { JournalName } from '../../storage/lmdb/environment/data-folder.ts';
import type { Environment } from '../../storage/lmdb/environment/environment.ts';
import {
  type AuditRow,
  audit,
  type StoredRow,
  storedRowTable,
} from '../../storage/postgres/schema/tables.ts';
import { behind, type Part } from './part.ts';

const numberBytes = 6;
const ownerBytes = 8;
const nothing = Buffer.alloc(0);

/**
 * The audit log; entries keep their numbers. In a data folder book 1, number 6 → the time, the owner and the rest of
 * the entry, and book 1, owner 8, number 6 for each; in the database the rest is JSON.
 */
export function auditPart(environment: Environment): Part<AuditRow> {
  const table = environment.table('audit');
  const owners = environment.table('auditOwners');
  return {
    name: 'audit',
    table: audit,
    compared: ({ number, book, owner, at_ms: atMs, entry }) => [number, book, owner, atMs, inUtf8(entry)],
    *read(after) {
      for (const { key, value } of table.getRange(behind(after))) {
        const { timeMs, owner, ...content } = unpack(value) as { timeMs: number; owner: string };
        const number = key.readUIntBE(1, numberBytes);
        const entry = JSON.stringify(content);
        yield { key, rows: [{ number, book: key.readUInt8(0), owner, at_ms: timeMs, entry }] };
      }
    },
    write(written) {
      for (const { number, book, owner, at_ms: timeMs, entry } of written) {
        const key = Buffer.alloc(1 + numberBytes);
        key.writeUInt8(book, 0);
        key.writeUIntBE(number, 1, numberBytes);
        table.putSync(key, pack({ timeMs, owner, ...JSON.parse(entry) }));
        const owned = Buffer.alloc(1 + ownerBytes + numberBytes);
        owned.writeUInt8(book, 0);
        owned.write(owner, 1, ownerBytes, 'latin1');
        owned.writeUIntBE(number, 1 + ownerBytes, numberBytes);
        owners.putSync(owned, nothing);
      }
    },
  };
}

/** Input JSON may escape lone surrogates, which a data folder stores as replacement characters. */
function inUtf8(entry: string): string {
  return JSON.stringify(
    JSON.parse(entry, (_, value) => (typeof value === 'string' ? Buffer.from(value).toString() : value)),
  );
}

/** Declarations, or state of jobs: an environment of a data folder, one store of the first database. */
export interface StoreLayout {
  name: 'registry' | JournalName;
  tables: readonly string[];
}

/** Keys and values have the same bytes on both sides. */
export function storeParts({ name: store, tables }: StoreLayout, environment: Environment): Part[] {
  return tables.map((name) => storedTable(store, name, environment));
}

function storedTable(store: string, name: string, environment: Environment): Part<StoredRow> {
  const table = environment.table(name);
  return {
    name: `${store} ${name}`,
    table: storedRowTable,
    // Rows without a value mark removed ones.
    where: `t.store = '${store}' AND t.name = '${name}' AND t.value IS NOT NULL`,
    compared: ({ key, value }) => [key, value],
    *read(after) {
      const at_ms = Date.now();
      for (const { key, value } of table.getRange(behind(after))) {
        const row = { store, name, key: Buffer.from(key), value: Buffer.from(value), version: 1, at_ms };
        yield { key, rows: [row] };
      }
    },
    write(written) {
      for (const { key, value } of written) table.putSync(key, value);
    },
  };
}
