import { OperatorError } from '../../core/errors.ts';
import { checkEnvironment } from '../../storage/lmdb/environment/check-environment.ts';
import { DataFolder, journalNames } from '../../storage/lmdb/environment/data-folder.ts';
import type { Database } from '../../storage/postgres/connection/database.ts';
import { agesOf } from '../parts/log-parts.ts';
import type { Comparison } from './comparison.ts';
import { CopiedDatabase, openDatabase } from './copied-database.ts';
import { type CopyOptions, checkUrls, compare, nameOf, placesOf, refuseDifferent, walks } from './copy.ts';
import { endInFolder } from './log-end.ts';
import { type CopyPlace, databaseOf, placeSizesOf, rowsIn } from './places.ts';
import { copyToDatabase, finishDatabase } from './to-database.ts';

/**
 * Copies the data folder of a stopped server into empty databases, one for each shard. It may end at any moment: the
 * same call again goes on. Until all of it is there and was compared, no server takes the databases.
 * @throws OperatorError, ApiError unavailable
 */
export async function copyToDatabases(options: CopyOptions): Promise<Comparison> {
  const { urls, log } = options;
  checkUrls(urls);
  const folder = openSource(options.folder, urls.length);
  const databases = urls.map((url) => openDatabase(url, log));
  const places = placesOf(options, folder, false);
  try {
    return await copyAll(places, databases, options);
  } finally {
    for (const database of databases) await database.close();
    for (const { environment } of places) await environment.close();
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
        `${folder.path} has ${shards} shards, and ${databases} databases are named: each shard goes into one. Start the server once with --shards ${databases}, which moves the folder, or name ${shards}.`,
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
  places: readonly CopyPlace[],
  databases: readonly Database[],
  options: CopyOptions,
): Promise<Comparison> {
  const { progress } = options;
  const state = places.map(placeSizesOf);
  const ends = places.flatMap(({ side }) => (side === undefined ? [] : [endInFolder(side)]));
  const targets: CopiedDatabase[] = [];
  for (const [index, database] of databases.entries()) {
    const copy = nameOf([index, databases.length, ends, state]);
    targets.push(await CopiedDatabase.open(database, copy, targets[0]?.isEnding ?? false));
  }
  progress.start(walks * places.reduce((sum, place) => sum + rowsIn(place), 0));
  await Promise.all(databases.map((_, index) => copyInto(places, targets, index, options)));
  const comparison = await compare(places, databases, options);
  refuseDifferent(comparison);
  await targets[0]?.noteEnding();
  // The first one last: as long as it is not served none is.
  for (const target of [...targets].reverse()) await target.end();
  return comparison;
}

/** All that belongs into one database. */
async function copyInto(
  places: readonly CopyPlace[],
  targets: readonly CopiedDatabase[],
  index: number,
  { progress }: CopyOptions,
): Promise<void> {
  const its = places.filter((place) => place.index === index);
  for (const place of its) {
    const target = databaseOf(targets, place);
    const ages = place.side === undefined ? { recordsMs: 0, keysMs: 0 } : agesOf(place.side.tables);
    for (const part of place.parts) {
      if (!part.isDerived) await copyToDatabase(part, target, ages, (count) => progress.add(count));
    }
  }
  for (const { side } of its) {
    if (side !== undefined) await finishDatabase(databaseOf(targets, { index }).database, endInFolder(side));
  }
}
