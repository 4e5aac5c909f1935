import { join } from 'node:path';
import type { DeviceKey } from '../../core/identity.ts';
import type { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import { Environment } from '../../storage/lmdb/environment/environment.ts';
import { readSequence } from '../../storage/lmdb/layout/keys.ts';
import type { Tables } from '../../storage/lmdb/layout/tables.ts';
import { tableNames } from '../../storage/lmdb/layout/tables.ts';
import type { Part, ShardSide } from '../parts/part.ts';
import { shardParts, shardSideOf } from '../parts/shard-parts.ts';
import { auditPart, type StoreLayout, storeParts } from '../parts/store-parts.ts';
import { endInFolder } from './log-end.ts';

/** Table of an environment during a copy into it: by part name, the last key copied. */
export const progressTable = 'copied';

/** An environment of the data folder, and the parts in it. */
export interface CopyEnvironment {
  environment: Environment;
  tables: readonly string[];
  /** Index of its database on the other side. */
  index: number;
  parts: Part[];
  /** Only for shards. */
  side: ShardSide<Tables> | undefined;
}

export interface CopyEnvironmentsOptions {
  folder: DataFolder;
  /** `registry`, and the journals. */
  stores: readonly StoreLayout[];
  shardOf(device: DeviceKey, shards: number): number;
  mapBytesMax: number;
  diskFreeBytesMin: number;
  /** True if it is the target of the copy. */
  isTarget: boolean;
}

/** Opens all environments of a data folder to copy from or to; what all nodes share belongs to the first database. */
export function openCopyEnvironments(options: CopyEnvironmentsOptions): CopyEnvironment[] {
  const { folder, stores, shardOf } = options;
  const shards = folder.shardFolders.map((path, index): CopyEnvironment => {
    const environment = open(path, tableNames, options);
    const side = shardSideOf(environment);
    const parts = shardParts(side, (device) => shardOf(device, folder.shards) === index);
    return { environment, tables: tableNames, index, parts, side };
  });
  const shared = stores.map((layout): CopyEnvironment => {
    const environment = open(join(folder.path, layout.name), layout.tables, options);
    const tables = layout.tables.filter((name) => !name.startsWith('audit'));
    const parts = storeParts({ ...layout, tables }, environment);
    if (tables.length < layout.tables.length) parts.push(auditPart(environment));
    return { environment, tables: layout.tables, index: 0, parts, side: undefined };
  });
  return [...shards, ...shared];
}

function open(path: string, tables: readonly string[], options: CopyEnvironmentsOptions): Environment {
  const { mapBytesMax, diskFreeBytesMin, isTarget } = options;
  return new Environment({
    path,
    tables: isTarget ? [...tables, progressTable] : tables,
    mapBytesMax,
    diskFreeBytesMin,
    readersMax: 8,
    commits: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
  });
}

/** Number of records per table. */
export function tableSizesOf({ environment, tables }: CopyEnvironment): Record<string, number> {
  return Object.fromEntries(tables.map((name) => [name, environment.sizeOf(name).records]));
}

/** Tables without rows of their own: indexes. */
const indexes = [
  'tags',
  'names',
  'seen',
  'retiring',
  'requeued',
  'expiry',
  'due',
  'activity',
  'mailboxes',
  'waiting',
  'auditOwners',
];

/** Approximate number of rows: batches of the log count as many records as they span positions. */
export function rowsIn(entry: CopyEnvironment): number {
  const sizes = tableSizesOf(entry);
  let rows = 0;
  for (const [name, records] of Object.entries(sizes)) if (!indexes.includes(name)) rows += records;
  if (entry.side === undefined) return rows;
  const { log } = entry.side.tables;
  for (const key of log.getKeys({ limit: 1 })) rows += endInFolder(entry.side).next - readSequence(key, 0);
  // Each device has a row of its own, one for its mailbox and one for its activity.
  return rows + 2 * (sizes.devices ?? 0) - (sizes.log ?? 0);
}

export function databaseOf<D>(databases: readonly D[], { index }: Pick<CopyEnvironment, 'index'>): D {
  const database = databases[index];
  if (database === undefined) throw new Error('each shard has a database');
  return database;
}
