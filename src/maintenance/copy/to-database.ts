import { uuidTimeMs } from '../../core/uuid.ts';
import type { Database, Row } from '../../storage/postgres/connection/database.ts';
import {
  keyPartitions,
  makePartitions,
  type PartitionedTable,
  recordPartitions,
} from '../../storage/postgres/schema/partitions.ts';
import { idempotency, record } from '../../storage/postgres/schema/tables.ts';
import type { Ages } from '../parts/log-parts.ts';
import type { Part } from '../parts/part.ts';
import { recount } from '../reshard-databases/recount.ts';
import type { CopiedDatabase } from './copied-database.ts';
import { type FolderRows, rowsInFolder } from './folder-rows.ts';
import { type LogEnd, storeEndInDatabase } from './log-end.ts';

/** Statements look at each part of a table that is cut by time, so they are few. */
const partitionsMax = 16;
const partitionMsMin = 60_000;

/** Where what is numbered goes on. */
const numbers = [
  `INSERT INTO store_version (store, version) SELECT store, max(version) FROM stored GROUP BY 1
   ON CONFLICT (store) DO UPDATE SET version = excluded.version`,
  `SELECT setval('audit_number', max(number)) FROM audit HAVING max(number) IS NOT NULL`,
];

/** Copies a part from a data folder, on from where an earlier try has come: each batch and how far it is at once. */
export async function copyToDatabase(
  part: Part,
  target: CopiedDatabase,
  ages: Ages,
  onRows: (count: number) => void,
): Promise<void> {
  const { database } = target;
  const put = async ({ rows, last }: FolderRows): Promise<void> => {
    await makeRoom(database, part, rows, ages);
    await database.transaction(async (transaction) => {
      if (rows.length > 0) transaction.query(part.table.put, part.table.rowsOf(rows));
      target.note(transaction, part.name, last);
      await transaction.commit();
    });
    onRows(rows.length);
  };
  // The next ones are read while these are written.
  let putting: Promise<void> | undefined;
  for (const batch of rowsInFolder(part, target.doneOf(part.name))) {
    await putting;
    putting = put(batch);
    // Awaited by the next turn, which may throw before it comes to that.
    putting.catch(() => {});
  }
  await putting;
}

/** What follows from what was copied. To do it again changes nothing. */
export async function finishDatabase(database: Database, end: LogEnd): Promise<void> {
  await storeEndInDatabase(database, end);
  for (const text of numbers) await database.query(text);
  await recount(database);
}

/** Rows of a table that is cut by time need the partitions of their times. */
async function makeRoom(database: Database, part: Part, rows: readonly Row[], ages: Ages): Promise<void> {
  const make = async (of: PartitionedTable, ageMs: number, times: number[]): Promise<void> => {
    const toMs = times.reduce((max, time) => Math.max(max, time), 0) + 1;
    const fromMs = times.reduce((min, time) => Math.min(min, time), toMs);
    const widthMs = Math.max(partitionMsMin, Math.ceil(ageMs / partitionsMax));
    await makePartitions(database, of, { fromMs, toMs }, widthMs);
  };
  if (part.table.name === record.name) {
    await make(
      recordPartitions,
      ages.recordsMs,
      rows.map(({ stored_at_ms: atMs }) => Number(atMs)),
    );
  }
  if (part.table.name === idempotency.name) {
    await make(
      keyPartitions,
      ages.keysMs,
      rows.map(({ key }) => uuidTimeMs(key as Buffer)),
    );
  }
}
