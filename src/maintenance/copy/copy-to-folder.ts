import { OperatorError } from '../../core/errors.ts';
import { countDevices } from '../../storage/lmdb/devices/device-index.ts';
import { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import type { Environment } from '../../storage/lmdb/environment/environment.ts';
import { countMails } from '../../storage/lmdb/mail/mail-bytes.ts';
import type { Database } from '../../storage/postgres/connection/database.ts';
import { checkVersion } from '../../storage/postgres/schema/migrate.ts';
import { pack, unpack } from '../../storage/tables/codec.ts';
import type { Part } from '../parts/part.ts';
import type { Comparison } from './comparison.ts';
import { openDatabase, refuseServed } from './copied-database.ts';
import {
  type CopyOptions,
  checkUrls,
  compare,
  copyEnvironmentsOf,
  nameOf,
  refuseDifferent,
  walks,
} from './copy.ts';
import { type CopyEnvironment, databaseOf, progressTable } from './copy-environments.ts';
import { countInDatabase, keyOfRow, rowsInDatabase } from './database-rows.ts';
import { endInDatabase, storeEndInFolder } from './log-end.ts';

/** Copies a part from a database, continuing an earlier attempt: each batch is stored together with the progress. */
async function copyToFolder(
  part: Part,
  database: Database,
  environment: Environment,
  onRows: (count: number) => void,
): Promise<void> {
  const progress = environment.table(progressTable);
  const name = Buffer.from(part.name);
  const done = progress.getBinary(name);
  const after = done === undefined ? undefined : (unpack(done) as unknown[]);
  for await (const rows of rowsInDatabase(database, part, after)) {
    if (!environment.hasDiskToGrow() || !environment.hasMapSpace()) {
      throw new OperatorError(
        'The disk of the data folder is full. Free some space and run the command again.',
      );
    }
    const last = rows.at(-1);
    environment.writeSync(() => {
      part.write(rows);
      if (last !== undefined) progress.putSync(name, pack(keyOfRow(part, last)));
    });
    onRows(rows.length);
  }
}

/** Clears the progress once it is not needed any more. */
function forgetProgress(environment: Environment): void {
  environment.writeSync(() => environment.table(progressTable).clearSync());
}

const storedTables = `SELECT DISTINCT store, name FROM stored WHERE value IS NOT NULL`;
const storeVersions = 'SELECT store, version FROM store_version ORDER BY store';

/**
 * Copies databases that no server uses into an empty data folder, each into a shard. Safe to interrupt: the same call
 * again continues. Until everything is copied and compared, no server accepts the folder.
 * @throws OperatorError, ApiError unavailable
 */
export async function copyToDataFolder(options: CopyOptions): Promise<Comparison | undefined> {
  const { urls, log } = options;
  checkUrls(urls);
  const databases = urls.map((url) => openDatabase(url, log));
  try {
    const ends: unknown[] = [];
    for (const database of databases) {
      await checkVersion(database);
      await refuseServed(database);
      ends.push(await endInDatabase(database));
    }
    const [first] = databases;
    if (first === undefined) throw new OperatorError('No database is named. Name one per shard.');
    await refuseUnknown(first, options);
    const copy = nameOf([ends, await first.query(storeVersions)]);
    const folder = DataFolder.openForCopy(options.folder, databases.length, copy);
    try {
      return await copyInto(folder, databases, options);
    } finally {
      folder.close();
    }
  } finally {
    for (const database of databases) await database.close();
  }
}

/** Refuses tables of a newer version, which would be left behind. @throws OperatorError */
async function refuseUnknown(first: Database, { stores }: CopyOptions): Promise<void> {
  const found = await first.query<{ store: string; name: string }>(storedTables);
  const known = new Set(
    stores.flatMap(({ name: store, tables }) => tables.map((name) => `${store} ${name}`)),
  );
  for (const { store, name } of found) {
    if (known.has(`${store} ${name}`)) continue;
    throw new OperatorError(
      'The first database has tables unknown to this version. Copy with the version that wrote them.',
    );
  }
}

async function copyInto(
  folder: DataFolder,
  databases: readonly Database[],
  options: CopyOptions,
): Promise<Comparison | undefined> {
  const environments = copyEnvironmentsOf(options, folder, true);
  try {
    const comparison = folder.isNew ? await copyAll(environments, databases, options) : undefined;
    if (comparison !== undefined) folder.complete();
    // Not before: a copy that started over without its progress would write other batches into the log.
    for (const { environment } of environments) forgetProgress(environment);
    folder.endCopy();
    return comparison;
  } finally {
    for (const { environment } of environments) await environment.close();
  }
}

async function copyAll(
  environments: readonly CopyEnvironment[],
  databases: readonly Database[],
  options: CopyOptions,
): Promise<Comparison> {
  const { progress } = options;
  let rows = 0;
  for (const entry of environments) {
    for (const part of entry.parts) rows += await countInDatabase(databaseOf(databases, entry), part);
  }
  progress.start(walks * rows);
  const copyOne = async (database: Database, index: number): Promise<void> => {
    for (const { environment, side, parts } of environments.filter((entry) => entry.index === index)) {
      for (const part of parts) {
        if (!part.isDerived) await copyToFolder(part, database, environment, (count) => progress.add(count));
      }
      if (side === undefined) continue;
      countDevices(environment);
      countMails(environment);
      storeEndInFolder(environment, side, await endInDatabase(database));
    }
  };
  await Promise.all(databases.map(copyOne));
  const comparison = await compare(environments, databases, options);
  refuseDifferent(comparison);
  return comparison;
}
