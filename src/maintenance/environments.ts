import { claimTokenTable } from '../declarations/claim-token.ts';
import { holdTable } from '../declarations/declared-hold.ts';
import { fleetTable, schemaTable } from '../declarations/fleet-tables.ts';
import { tokenTable } from '../declarations/tokens.ts';
import { actionTable, versionTable } from '../features/actions/declaration/action-records.ts';
import { type ActionJournal, actionTables } from '../features/actions/tables.ts';
import { auditOwnerTable, auditTable } from '../features/audit/audit-records.ts';
import { broadcastLayouts } from '../features/broadcasts/tables.ts';
import { consumerTable } from '../features/consumers/consumer-tables.ts';
import { forwarderTable } from '../features/forwarders/declaration/forwarder-records.ts';
import { forwarderLetterTable, forwarderReplayTable } from '../features/forwarders/forwarder-dead-letters.ts';
import { cursorDoneTable, cursorTable } from '../features/records/cursor.ts';
import type { StorageConfig } from '../storage/config.ts';
import { Environment } from '../storage/lmdb/environment/environment.ts';
import { Journal } from '../storage/tables/journal.ts';
import type { TableStore } from '../storage/tables/table-store.ts';
import type { StoreLayout } from './parts/store-parts.ts';

/** For the main thread and the snapshots it holds for a backup, with room to spare. */
const readersMax = 32;

/** Tables of what operators declare; each belongs to the part that reads it. */
export const registryTables: readonly string[] = [
  fleetTable,
  schemaTable,
  tokenTable,
  claimTokenTable,
  holdTable,
  actionTable,
  versionTable,
  forwarderTable,
].map(({ name }) => name);

type Limits = Pick<StorageConfig, 'mapBytesMax' | 'diskFreeBytesMin'>;

/** Opens the registry; its map has the same limit as a shard's. */
export function openRegistry(path: string, limits: Limits): Environment {
  return open(path, registryTables, limits);
}

export function actionJournalOf(stored: TableStore): ActionJournal {
  return new Journal(stored, actionTables, 'The store of actions');
}

export function openJournal(path: string, limits: Limits): ActionJournal {
  return actionJournalOf(open(path, actionTables, limits));
}

/** Tables of jobs and consumers; each belongs to the feature that reads it. */
export const controlTables: readonly string[] = [
  consumerTable,
  cursorTable,
  cursorDoneTable,
  forwarderLetterTable,
  forwarderReplayTable,
  ...broadcastLayouts,
  auditTable,
  auditOwnerTable,
].map(({ name }) => name);

export function controlJournalOf(stored: TableStore): Journal {
  return new Journal(stored, [], 'The store of jobs and consumers');
}

export function openControl(path: string, limits: Limits): Journal {
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
