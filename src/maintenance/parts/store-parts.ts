import type { JournalName } from '../../storage/lmdb/environment/data-folder.ts';
import type { Environment } from '../../storage/lmdb/environment/environment.ts';
import { type StoredRow, storedRowTable } from '../../storage/postgres/schema/tables.ts';
import { behind, type Part } from './part.ts';

/** What operators declare or jobs keep: an environment of a data folder, one store of the first database. */
export interface StoreLayout {
  name: 'registry' | JournalName;
  tables: readonly string[];
}

/** Keys and values are the same bytes on both sides. */
export function storeParts({ name: store, tables }: StoreLayout, environment: Environment): Part[] {
  return tables.map((name) => storedTable(store, name, environment));
}

function storedTable(store: string, name: string, environment: Environment): Part<StoredRow> {
  const table = environment.table(name);
  return {
    name: `${store} ${name}`,
    table: storedRowTable,
    // Rows without a value are removed ones.
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
