import { OperatorError } from '../../core/errors.ts';
import { uuidTimeMs } from '../../core/uuid.ts';
import { checkEnvironment } from '../../storage/lmdb/environment/check-environment.ts';
import { DataFolder, journalNames } from '../../storage/lmdb/environment/data-folder.ts';
import type { Database, Row } from '../../storage/postgres/connection/database.ts';
import {
  keyPartitions,
  makePartitions,
  type PartitionedTable,
  recordPartitions,
} from '../../storage/postgres/schema/partitions.ts';
import { idempotency, record } from '../../storage/postgres/schema/tables.ts';
import { type Ages, agesOf } from '../parts/log-parts.ts';
import type { Part } from '../parts/part.ts';
import { recount } from '../reshard-databases/resharded-database.ts';
import type { Comparison } from './comparison.ts';
import { CopiedDatabase, openDatabase } from './copied-database.ts';
import {
  type CopyOptions,
  checkUrls,
  compare,
  copyEnvironmentsOf,
  nameOf,
  refuseDifferent,
  walks,
} from './copy.ts';
import { type CopyEnvironment, databaseOf, rowsIn, tableSizesOf } from './copy-environments.ts';
import { type FolderRows, rowsInFolder } from './database-rows.ts';
import { endInFolder, type LogEnd, storeEndInDatabase } from './log-end.ts';

/** Statements scan every partition, so there are few. */
const partitionsMax = 16;
const partitionMsMin = 60_000;

/** Continues the sequences where they were. */
const numbers = [
  `INSERT INTO store_version (store, version) SELECT store, max(version) FROM stored GROUP BY 1
   ON CONFLICT (store) DO UPDATE SET version = excluded.version`,
  `SELECT setval('audit_number', max(number)) FROM audit HAVING max(number) IS NOT NULL`,
];

/** Copies a part from a data folder, continuing an earlier attempt: each batch is stored together with the progress. */
async function copyToDatabase(
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
  // Reads the next rows while these are written.
  let putting: Promise<void> | undefined;
  for (const batch of rowsInFolder(part, target.doneOf(part.name))) {
    await putting;
    putting = put(batch);
    // Awaited by the next iteration, which may throw before that.
    putting.catch(() => {});
  }
  await putting;
}

/** Writes what is derived from the copied rows; idempotent. */
async function finishDatabase(database: Database, end: LogEnd): Promise<void> {
  await storeEndInDatabase(database, end);
  for (const text of numbers) await database.query(text);
  await recount(database);
}

/** Creates the partitions that rows of a partitioned table need. */
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

/**
 * Copies the data folder of a stopped server into empty databases, one per shard. Safe to interrupt: the same call
 * again continues. Until everything is copied and compared, no server accepts the databases.
 * @throws OperatorError, ApiError unavailable
 */
export async function copyToDatabases(options: CopyOptions): Promise<Comparison> {
  const { urls, log } = options;
  checkUrls(urls);
  const folder = openSource(options.folder, urls.length);
  const databases = urls.map((url) => openDatabase(url, log));
  const environments = copyEnvironmentsOf(options, folder, false);
  try {
    return await copyAll(environments, databases, options);
  } finally {
    for (const database of databases) await database.close();
    for (const { environment } of environments) await environment.close();
    folder.close();
  }
}

/** @throws OperatorError */
function openSource(path: string, databases: number): DataFolder {
  const folder = DataFolder.openStopped(path);
  try {
    const { shards, shardFolders, registryFolder } = folder;
    if (shards !== databases) {
      throw new OperatorError(
        `${folder.path} has ${shards} shards, but ${databases} databases are named, one per shard. Start the server once with --shards ${databases} to reshard the folder, or name ${shards}.`,
      );
    }
    const journals = journalNames.map((name) => folder.journalFolder(name));
    for (const one of [registryFolder, ...shardFolders, ...journals]) checkEnvironment(one);
    return folder;
  } catch (error) {
    folder.close();
    throw error;
  }
}

async function copyAll(
  environments: readonly CopyEnvironment[],
  databases: readonly Database[],
  options: CopyOptions,
): Promise<Comparison> {
  const { progress } = options;
  const state = environments.map(tableSizesOf);
  const ends = environments.flatMap(({ side }) => (side === undefined ? [] : [endInFolder(side)]));
  const targets: CopiedDatabase[] = [];
  for (const [index, database] of databases.entries()) {
    const copy = nameOf([index, databases.length, ends, state]);
    targets.push(await CopiedDatabase.open(database, copy, targets[0]?.isEnding ?? false));
  }
  progress.start(walks * environments.reduce((sum, entry) => sum + rowsIn(entry), 0));
  await Promise.all(databases.map((_, index) => copyInto(environments, targets, index, options)));
  const comparison = await compare(environments, databases, options);
  refuseDifferent(comparison);
  await targets[0]?.noteEnding();
  // The first database last: as long as it is not served, none is.
  for (const target of [...targets].reverse()) await target.end();
  return comparison;
}

/** Copies everything that belongs in one database. */
async function copyInto(
  environments: readonly CopyEnvironment[],
  targets: readonly CopiedDatabase[],
  index: number,
  { progress }: CopyOptions,
): Promise<void> {
  const its = environments.filter((entry) => entry.index === index);
  for (const entry of its) {
    const target = databaseOf(targets, entry);
    const ages = entry.side === undefined ? { recordsMs: 0, keysMs: 0 } : agesOf(entry.side.tables);
    for (const part of entry.parts) {
      if (!part.isDerived) await copyToDatabase(part, target, ages, (count) => progress.add(count));
    }
  }
  for (const { side } of its) {
    if (side !== undefined) await finishDatabase(databaseOf(targets, { index }).database, endInFolder(side));
  }
}
