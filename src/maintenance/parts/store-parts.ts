import { auditBooks } from '../../domain/audit-log.ts';
import { auditOwnerTable, auditTable } from '../../features/audit/audit-records.ts';
import type { JournalName } from '../../storage/lmdb/environment/data-folder.ts';
import type { Environment } from '../../storage/lmdb/environment/environment.ts';
import {
  type AuditRow,
  audit,
  type StoredRow,
  storedRowTable,
} from '../../storage/postgres/schema/tables.ts';
import { Collection, decodeRow } from '../../storage/tables/collection.ts';
import type { Part } from './part.ts';

/**
 * The audit log; entries keep their numbers. In the database what is not a column is JSON.
 */
export function auditPart(environment: Environment): Part<AuditRow> {
  const table = environment.table(auditTable.name);
  const entries = new Collection(environment, auditTable);
  const owners = new Collection(environment, auditOwnerTable);
  return {
    name: 'audit',
    table: audit,
    compared: ({ number, book, owner, at_ms: atMs, entry }) => [number, book, owner, atMs, inUtf8(entry)],
    source: table,
    rowsOf(record) {
      const [[name, number], { timeMs, owner, ...content }] = decodeRow(auditTable, record);
      const entry = JSON.stringify(content);
      const book = auditBooks.indexOf(name);
      return [{ number, book, owner, at_ms: timeMs, entry }];
    },
    write(written) {
      for (const { number, book, owner, at_ms: timeMs, entry } of written) {
        const name = auditBooks[book];
        if (name === undefined) throw new Error('a book unknown to this version');
        entries.put([name, number], { timeMs, owner, ...JSON.parse(entry) });
        owners.put([name, owner, number], undefined);
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
    source: table,
    rowsOf({ key, value }) {
      const at_ms = Date.now();
      const row = { store, name, key: Buffer.from(key), value: Buffer.from(value), version: 1, at_ms };
      return [row];
    },
    write(written) {
      for (const { key, value } of written) table.putSync(key, value);
    },
  };
}
