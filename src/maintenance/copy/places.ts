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

/** Of each environment, while a copy goes into it: by the name of a part, the last key that was copied of it. */
export const progressTable = 'copied';

/** An environment of the data folder, and all that is in it. */
export interface CopyPlace {
  environment: Environment;
  tables: readonly string[];
  /** Which database has it on the other side. */
  index: number;
  parts: Part[];
  /** Of a shard. */
  side: ShardSide<Tables> | undefined;
}

export interface PlacesOptions {
  folder: DataFolder;
  /** `registry`, and what there is of journals. */
  stores: readonly StoreLayout[];
  placeOf(device: DeviceKey, shards: number): number;
  mapBytesMax: number;
  diskFreeBytesMin: number;
  /** Whether it is being copied into. */
  isTarget: boolean;
}

/** Of a data folder of either side, all that is copied: the first database has what all nodes share. */
export function openPlaces(options: PlacesOptions): CopyPlace[] {
  const { folder, stores, placeOf } = options;
  const shards = folder.shardFolders.map((path, index): CopyPlace => {
    const environment = open(path, tableNames, options);
    const side = shardSideOf(environment);
    const parts = shardParts(side, (device) => placeOf(device, folder.shards) === index);
    return { environment, tables: tableNames, index, parts, side };
  });
  const shared = stores.map((layout): CopyPlace => {
    const environment = open(join(folder.path, layout.name), layout.tables, options);
    const tables = layout.tables.filter((name) => !name.startsWith('audit'));
    const parts = storeParts({ ...layout, tables }, environment);
    if (tables.length < layout.tables.length) parts.push(auditPart(environment));
    return { environment, tables: layout.tables, index: 0, parts, side: undefined };
  });
  return [...shards, ...shared];
}

function open(path: string, tables: readonly string[], options: PlacesOptions): Environment {
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

/** Of each table, how many records there are. */
export function placeSizesOf({ environment, tables }: CopyPlace): Record<string, number> {
  return Object.fromEntries(tables.map((name) => [name, environment.sizeOf(name).records]));
}

/** Tables of a shard that have no rows of their own: indexes. */
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
  'auditOwners',
];

/** About how many rows stand for what is there: batches of the log hold as many records as they have positions. */
export function rowsIn(place: CopyPlace): number {
  const sizes = placeSizesOf(place);
  let rows = 0;
  for (const [name, records] of Object.entries(sizes)) if (!indexes.includes(name)) rows += records;
  if (place.side === undefined) return rows;
  const { log } = place.side.tables;
  for (const key of log.getKeys({ limit: 1 })) rows += endInFolder(place.side).next - readSequence(key, 0);
  // Each device has a row of its own, of its mailbox and of when it was seen.
  return rows + 2 * (sizes.devices ?? 0) - (sizes.log ?? 0);
}

export function databaseOf<D>(databases: readonly D[], { index }: Pick<CopyPlace, 'index'>): D {
  const database = databases[index];
  if (database === undefined) throw new Error('each shard has a database');
  return database;
}
