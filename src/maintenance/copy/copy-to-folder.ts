import { OperatorError } from '../../core/errors.ts';
import { countDevices } from '../../storage/lmdb/devices/device-index.ts';
import { pack, unpack } from '../../storage/lmdb/environment/codec.ts';
import { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import type { Environment } from '../../storage/lmdb/environment/environment.ts';
import type { Database } from '../../storage/postgres/connection/database.ts';
import { checkVersion } from '../../storage/postgres/schema/migrate.ts';
import type { Part } from '../parts/part.ts';
import type { Comparison } from './comparison.ts';
import { openDatabase, refuseServed } from './copied-database.ts';
import { type CopyOptions, checkUrls, compare, nameOf, placesOf, refuseDifferent, walks } from './copy.ts';
import { countInDatabase, keyOfRow, rowsInDatabase } from './database-rows.ts';
import { endInDatabase, storeEndInFolder } from './log-end.ts';
import { type CopyPlace, databaseOf, progressTable } from './places.ts';

/** Copies a part from a database, on from where an earlier try has come: each batch and how far it is at once. */
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
    if (!environment.hasDiskToGrow() || !environment.hasRoom()) {
      throw new OperatorError('The disk of the data folder is full: make room, and give the command again.');
    }
    const last = rows.at(-1);
    environment.writeSync(() => {
      part.write(rows);
      if (last !== undefined) progress.putSync(name, pack(keyOfRow(part, last)));
    });
    onRows(rows.length);
  }
}

/** How far it has come is of no use to anybody any more. */
function forgetProgress(environment: Environment): void {
  environment.writeSync(() => environment.table(progressTable).clearSync());
}

const storedTables = `SELECT DISTINCT store, name FROM stored WHERE value IS NOT NULL`;
const storeVersions = 'SELECT store, version FROM store_version ORDER BY store';

/**
 * Copies databases that no server works on into an empty data folder, each into a shard. It may end at any moment: the
 * same call again goes on. Until all of it is there and was compared, no server takes the folder.
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
    if (first === undefined) throw new OperatorError('No database is named.');
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

/** What a newer version keeps would be left behind. @throws OperatorError */
async function refuseUnknown(first: Database, { stores }: CopyOptions): Promise<void> {
  const found = await first.query<{ store: string; name: string }>(storedTables);
  const known = new Set(
    stores.flatMap(({ name: store, tables }) => tables.map((name) => `${store} ${name}`)),
  );
  for (const { store, name } of found) {
    if (known.has(`${store} ${name}`)) continue;
    throw new OperatorError(
      'The first database has tables that this version does not know: copy with the version that wrote them.',
    );
  }
}

async function copyInto(
  folder: DataFolder,
  databases: readonly Database[],
  options: CopyOptions,
): Promise<Comparison | undefined> {
  const places = placesOf(options, folder, true);
  try {
    const comparison = folder.isNew ? await copyAll(places, databases, options) : undefined;
    if (comparison !== undefined) folder.complete();
    // Not before: a copy that begins anew without it would put other batches into the log.
    for (const { environment } of places) forgetProgress(environment);
    folder.endCopy();
    return comparison;
  } finally {
    for (const { environment } of places) await environment.close();
  }
}

async function copyAll(
  places: readonly CopyPlace[],
  databases: readonly Database[],
  options: CopyOptions,
): Promise<Comparison> {
  const { progress } = options;
  let rows = 0;
  for (const place of places) {
    for (const part of place.parts) rows += await countInDatabase(databaseOf(databases, place), part);
  }
  progress.start(walks * rows);
  const copyOne = async (database: Database, index: number): Promise<void> => {
    for (const { environment, side, parts } of places.filter((place) => place.index === index)) {
      for (const part of parts) {
        if (!part.isDerived) await copyToFolder(part, database, environment, (count) => progress.add(count));
      }
      if (side === undefined) continue;
      countDevices(environment);
      storeEndInFolder(environment, side, await endInDatabase(database));
    }
  };
  await Promise.all(databases.map(copyOne));
  const comparison = await compare(places, databases, options);
  refuseDifferent(comparison);
  return comparison;
}
