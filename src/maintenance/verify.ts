import { relative, resolve } from 'node:path';
import { verifyRegistry } from '../declarations/verify.ts';
import { shardOf } from '../domain/placement.ts';
import { verifyActions, verifyDeclaredActions } from '../features/actions/verify.ts';
import { verifyAudit } from '../features/audit/audit-records.ts';
import { broadcastLayouts } from '../features/broadcasts/tables.ts';
import { verifyConsumers } from '../features/consumers/verify.ts';
import { verifyDeclaredForwarders, verifyLetters } from '../features/forwarders/verify.ts';
import { environmentsOf, isBackup, isUnchanged, readBackup } from '../storage/lmdb/environment/backup.ts';
import { DataFolder, type JournalName } from '../storage/lmdb/environment/data-folder.ts';
import {
  Damage,
  DatabaseFile,
  recordsFile,
  type StoredTable,
} from '../storage/lmdb/environment/database-file.ts';
import { refuseOlder } from '../storage/lmdb/environment/manifest.ts';
import { type ShardCounts, verifyShard } from '../storage/lmdb/verify/verify.ts';
import { checkTable, type StoppedStore } from '../storage/tables/check-rows.ts';
import { Findings } from '../storage/tables/findings.ts';

/** Further findings are only counted: what is wrong with one page can be wrong with each of its records. */
const sentencesMax = 100;

export interface Verification extends ShardCounts {
  folder: string;
  shards: number;
  fleets: number;
  schemas: number;
  actions: number;
  actionDeadLetters: number;
  consumers: number;
  forwarders: number;
  findings: Findings;
}

/** Receives the total number of records, then one call per record. */
export interface VerifyProgress {
  start(records: number): void;
  onRecord(): void;
}

interface Folder {
  path: string;
  registryFolder: string;
  journalFolders: Readonly<Record<JournalName, string>>;
  shardFolders: readonly string[];
  close(): void;
}

/**
 * Reads every record of a backup, or of a data folder whose server is stopped.
 * @throws OperatorError when there is nothing to read
 */
export async function verifyFolder(path: string, progress: VerifyProgress): Promise<Verification> {
  const findings = new Findings(sentencesMax);
  const folder = isBackup(path) ? await openBackup(resolve(path), findings) : openData(path);
  try {
    return walk(folder, findings, progress);
  } finally {
    folder.close();
  }
}

function openData(path: string): Folder {
  const folder = DataFolder.openStopped(path);
  const { registryFolder, shardFolders } = folder;
  const journalFolders = {
    actions: folder.journalFolder('actions'),
    control: folder.journalFolder('control'),
  };
  const close = (): void => folder.close();
  return { path: folder.path, registryFolder, journalFolders, shardFolders, close };
}

async function openBackup(path: string, findings: Findings): Promise<Folder> {
  const backup = readBackup(path);
  refuseOlder(
    `The backup ${path}`,
    backup.manifest,
    'Verify it with the version that wrote it, or restore it: the first start upgrades what was restored.',
  );
  for (const file of backup.files) {
    if (!(await isUnchanged(path, file))) findings.add(`${file.path}: not what was backed up`);
  }
  return { path, ...environmentsOf(path, backup), close: () => {} };
}

function walk(folder: Folder, findings: Findings, progress: VerifyProgress): Verification {
  const opened: DatabaseFile[] = [];
  try {
    const open = (path: string): ReadonlyMap<string, StoredTable> | undefined => {
      const name = relative(folder.path, path);
      try {
        const file = new DatabaseFile(path);
        opened.push(file);
        file.checkFreePages((damage) => findings.add(`${name}, free pages: ${damage.message}`));
        return file.tables();
      } catch (error) {
        findings.add(`${name}/${recordsFile}: ${describe(error)}`);
        return undefined;
      }
    };
    const registry = open(folder.registryFolder);
    const shards = folder.shardFolders.map(open);
    const dispatched = open(folder.journalFolders.actions);
    const control = open(folder.journalFolders.control);
    const tables = [registry, dispatched, control, ...shards].flatMap((one) => [...(one?.values() ?? [])]);
    progress.start(tables.reduce((sum, { size }) => sum + size, 0));

    const { onRecord } = progress;
    const part = (name: string, tables: StoppedStore['tables']): StoppedStore => ({
      part: name,
      tables,
      findings,
      onRecord,
    });
    const declared = part('registry', registry ?? new Map());
    const { fleets, schemas } = verifyRegistry(declared);
    const actions = verifyDeclaredActions(declared, fleets);
    const forwarders = verifyDeclaredForwarders(declared, fleets);
    const counts: ShardCounts = { devices: 0, mails: 0, logRecords: 0, idempotencyKeys: 0 };
    const actionDeadLetters = dispatched === undefined ? 0 : verifyActions(part('actions', dispatched));
    let consumers = 0;
    if (control !== undefined) {
      verifyLetters(part('forwarders', control));
      for (const layout of broadcastLayouts) checkTable(part('broadcasts', control), layout);
      verifyAudit(part('control', control));
      consumers = verifyConsumers(part('consumers', control), (fleetId) => fleets.has(fleetId));
    }
    for (const [index, tables] of shards.entries()) {
      if (tables === undefined) continue;
      const counted = verifyShard({
        tables,
        belongsHere: (device) => shardOf(device, shards.length) === index,
        hasFleet: (fleetId) => fleets.has(fleetId),
        findings: findings.of(`shard ${index}`),
        onRecord: progress.onRecord,
      });
      for (const key of Object.keys(counts) as (keyof ShardCounts)[]) counts[key] += counted[key];
    }
    return {
      folder: folder.path,
      shards: shards.length,
      fleets: fleets.size,
      schemas,
      actions,
      forwarders,
      actionDeadLetters,
      consumers,
      ...counts,
      findings,
    };
  } finally {
    for (const file of opened) file.close();
  }
}

function describe(error: unknown): string {
  return error instanceof RangeError && !(error instanceof Damage)
    ? 'a page is overwritten'
    : (error as Error).message;
}
