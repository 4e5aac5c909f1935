import { registryTables } from '../declarations/registry.ts';
import { type ActionJournal, actionTables } from '../features/actions/tables.ts';
import { auditTables } from '../features/audit/audit-records.ts';
import { broadcastTables } from '../features/broadcasts/tables.ts';
import { forwarderTables } from '../features/forwarders/tables.ts';
import { consumerTables } from '../features/records/consumer-tables.ts';
import type { StorageConfig } from '../storage/config.ts';
import { Environment } from '../storage/lmdb/environment/environment.ts';
import { Journal } from '../storage/lmdb/environment/journal.ts';
import type { StoredTables } from '../storage/lmdb/environment/stored-tables.ts';
import type { StoreLayout } from './parts/store-parts.ts';

/** Tools may read the main thread's environments while they are in use. */
const readersMax = 32;

type Limits = Pick<StorageConfig, 'mapBytesMax' | 'diskFreeBytesMin'>;

/** Opens the registry; its map has the same limit as a shard's. */
export function openRegistry(path: string, limits: Limits): Environment {
  return open(path, registryTables, limits);
}

export function actionJournalOf(stored: StoredTables): ActionJournal {
  return new Journal(stored, actionTables, 'The store of actions');
}

export function openJournal(path: string, limits: Limits): ActionJournal {
  return actionJournalOf(open(path, actionTables, limits));
}

/** Tables of jobs and consumers; each belongs to the feature that reads it. */
export const controlTables = [
  ...broadcastTables,
  ...consumerTables,
  ...forwarderTables,
  ...auditTables,
] as const;
export type ControlJournal = Journal<(typeof controlTables)[number]>;

export function controlJournalOf(stored: StoredTables): ControlJournal {
  return new Journal(stored, controlTables, 'The store of jobs and consumers');
}

export function openControl(path: string, limits: Limits): ControlJournal {
  return controlJournalOf(open(path, controlTables, limits));
}

/** All stores of a data folder but the shards. */
export const storeLayouts: readonly StoreLayout[] = [
  { name: 'registry', tables: registryTables },
  { name: 'control', tables: controlTables },
  { name: 'actions', tables: actionTables },
];

function open(
  path: string,
  tables: readonly string[],
  { mapBytesMax, diskFreeBytesMin }: Limits,
): Environment {
  const commits = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  return new Environment({ path, tables, mapBytesMax, diskFreeBytesMin, readersMax, commits });
}
