import { hash } from 'node:crypto';
import { OperatorError } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import type { Database } from '../../storage/postgres/connection/database.ts';
import { checkUrl } from '../../storage/postgres/connection/database-url.ts';
import type { StoreLayout } from '../parts/store-parts.ts';
import { Comparison } from './comparison.ts';
import { type CopyEnvironment, openCopyEnvironments } from './copy-environments.ts';
import { endInDatabase, endInFolder } from './log-end.ts';
import { RowDigest } from './row-digest.ts';

/** Receives the total number of records, then what was read or written. */
export interface CopyProgress {
  start(records: number): void;
  add(records: number): void;
}

export interface CopyOptions {
  folder: string;
  /** URLs of the databases, in the order of `store.shards`. */
  urls: readonly string[];
  /** Every table of the registry and of the journals. */
  stores: readonly StoreLayout[];
  /** Shard of a device. */
  shardOf(device: DeviceKey, shards: number): number;
  mapBytesMax: number;
  diskFreeBytesMin: number;
  progress: CopyProgress;
  log: Log;
}

/** All records are read once to copy them, and once on each side to compare them. */
export const walks = 3;

/** @throws OperatorError for an invalid or duplicate URL */
export function checkUrls(urls: readonly string[]): void {
  for (const url of urls) checkUrl(url);
  if (new Set(urls).size < urls.length) {
    throw new OperatorError('A database is named twice. Name one per shard.');
  }
}

/** Identifies a state of a store: an interrupted copy continues only from the same one. */
export function nameOf(state: unknown): string {
  return hash('sha256', JSON.stringify(state));
}

export function copyEnvironmentsOf(
  options: CopyOptions,
  folder: DataFolder,
  isTarget: boolean,
): CopyEnvironment[] {
  const { stores, shardOf, mapBytesMax, diskFreeBytesMin } = options;
  return openCopyEnvironments({ folder, stores, shardOf, mapBytesMax, diskFreeBytesMin, isTarget });
}

/** Compares all records of both sides, whenever they were copied. @throws OperatorError where they differ */
export async function compare(
  environments: readonly CopyEnvironment[],
  databases: readonly Database[],
  { progress }: CopyOptions,
): Promise<Comparison> {
  const comparison = new Comparison();
  const compareOne = async (database: Database, index: number): Promise<void> => {
    for (const { parts, side } of environments.filter((entry) => entry.index === index)) {
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
    `The copy differs from its source: ${kinds.join(', ')}. It is not served. Check whether a server was started meanwhile, and start over with an empty target.`,
  );
}
