import { hash } from 'node:crypto';
import { OperatorError } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import type { Database } from '../../storage/postgres/connection/database.ts';
import { checkUrl } from '../../storage/postgres/connection/database-url.ts';
import type { StoreLayout } from '../parts/store-parts.ts';
import { Comparison } from './comparison.ts';
import { endInDatabase, endInFolder } from './log-end.ts';
import { type CopyPlace, openPlaces } from './places.ts';
import { RowDigest } from './row-digest.ts';

/** Told of every record that is read or written, and of how many there are in all. */
export interface CopyProgress {
  start(records: number): void;
  add(records: number): void;
}

export interface CopyOptions {
  folder: string;
  /** Of the databases, in the order of `store.shards`. */
  urls: readonly string[];
  /** Every table of the registry and of the journals. */
  stores: readonly StoreLayout[];
  /** Where a device belongs. */
  placeOf(device: DeviceKey, shards: number): number;
  mapBytesMax: number;
  diskFreeBytesMin: number;
  progress: CopyProgress;
  log: Log;
}

/** All records are read once to copy them, and once on each side to compare them. */
export const walks = 3;

/** @throws OperatorError for what is wrong whatever is in them. */
export function checkUrls(urls: readonly string[]): void {
  for (const url of urls) checkUrl(url);
  if (new Set(urls).size < urls.length) {
    throw new OperatorError('A database is named twice: name one for each shard.');
  }
}

/** Names a state of a store: a copy that was cut off goes on only from the same one. */
export function nameOf(state: unknown): string {
  return hash('sha256', JSON.stringify(state));
}

export function placesOf(options: CopyOptions, folder: DataFolder, isTarget: boolean): CopyPlace[] {
  const { stores, placeOf, mapBytesMax, diskFreeBytesMin } = options;
  return openPlaces({ folder, stores, placeOf, mapBytesMax, diskFreeBytesMin, isTarget });
}

/**
 * Reads both sides from the front to the end, whatever was copied when, and holds them against each other.
 * @throws OperatorError where they are not the same.
 */
export async function compare(
  places: readonly CopyPlace[],
  databases: readonly Database[],
  { progress }: CopyOptions,
): Promise<Comparison> {
  const comparison = new Comparison();
  const compareOne = async (database: Database, index: number): Promise<void> => {
    for (const { parts, side } of places.filter((place) => place.index === index)) {
      for (const part of parts) await comparison.add(part, database, (count) => progress.add(count));
      if (side === undefined) continue;
      const [folder, other] = [new RowDigest(), new RowDigest()];
      folder.addValue([index, endInFolder(side).next]);
      other.addValue([index, (await endInDatabase(database)).next]);
      comparison.addCounted('ends of logs', folder, other);
    }
  };
  await Promise.all(databases.map(compareOne));
  return comparison;
}

/** @throws OperatorError */
export function refuseDifferent(comparison: Comparison): void {
  const { different } = comparison;
  if (different.length === 0) return;
  const kinds = different.map(
    ({ name, folder, databases }) =>
      `${name} (${folder.count} in the folder, ${databases.count} in the databases)`,
  );
  throw new OperatorError(
    `What was copied is not what there is: ${kinds.join(', ')}. The copy is not served. Was a server started meanwhile? Begin anew with an empty target.`,
  );
}
