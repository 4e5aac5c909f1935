import { setImmediate as nextTurn } from 'node:timers/promises';
import { OperatorError } from '../../core/errors.ts';
import type { StorageConfig } from '../../storage/config.ts';
import type { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import { Environment } from '../../storage/lmdb/environment/environment.ts';
import { formatVersion } from '../../storage/lmdb/environment/manifest.ts';
import { ProgressReport } from '../progress-report.ts';
import { type FormatStep, formatSteps, type TableChange } from './format-steps.ts';

export interface UpgradeOptions {
  config: StorageConfig;
  /** Stops between two transactions; the next start continues from there. */
  signal: AbortSignal;
}

/** Table in the environment that is changed: by format and table, the last key that the step has done. */
const progressTable = 'upgraded';
/** A transaction ends with the first of them. */
const recordsPerWrite = 10_000;
const bytesPerWrite = 8 * 1024 * 1024;

/**
 * Brings the data folder to `formatVersion` before anything is served, format by format. The manifest has the next
 * format from before the first change on, so that older versions refuse what is half done, and is free of
 * `upgradingFrom` once all is durable. Each transaction stores how far it has come, so that a record is changed once
 * however often the upgrade is killed.
 * @throws OperatorError for a format without a step, or when a step fails; the signal's reason when it was stopped
 */
export async function upgradeFolder(
  folder: DataFolder,
  options: UpgradeOptions,
  steps: ReadonlyMap<number, FormatStep> = formatSteps,
): Promise<void> {
  while (folder.format < formatVersion) {
    const from = folder.format;
    const step = steps.get(from);
    if (step === undefined) {
      throw new OperatorError(
        `The data folder ${folder.path} has format ${from}, too old for this version of Fleetpost. Nothing was changed. Start it once with a version in between.`,
      );
    }
    await runStep(folder, from, step, options);
  }
}

interface OpenedChange {
  change: TableChange;
  environment: Environment;
}

async function runStep(
  folder: DataFolder,
  from: number,
  step: FormatStep,
  options: UpgradeOptions,
): Promise<void> {
  const title = `Upgrading ${folder.path} from format ${from} to ${from + 1}`;
  const opened: OpenedChange[] = step.flatMap((change) =>
    foldersOf(folder, change).map((path) => ({ change, environment: openFor(change, path, options.config) })),
  );
  const records = opened.reduce(
    (sum, { change, environment }) => sum + environment.sizeOf(change.table).records,
    0,
  );
  const report = new ProgressReport(title, records);
  try {
    if (!folder.isUpgrading) {
      for (const { environment } of opened) {
        environment.writeSync(() => environment.table(progressTable).clearSync());
      }
    }
    folder.beginUpgrade();
    for (const { change, environment } of opened) {
      for (const passed of changeTable(environment, change, from)) {
        report.add(passed);
        // /readyz is answered meanwhile, and signals are heard.
        await nextTurn();
        options.signal.throwIfAborted();
      }
    }
    folder.endUpgrade();
    report.end();
    console.error(`${title} took ${report.seconds} s.`);
  } catch (error) {
    report.end();
    if (options.signal.aborted) throw error;
    throw new OperatorError(
      `${title} failed: ${(error as Error).message}. Nothing is lost: the next start continues, or restore a backup for the version before.`,
    );
  } finally {
    for (const { environment } of opened) await environment.close();
  }
}

function foldersOf(folder: DataFolder, { environment }: TableChange): readonly string[] {
  if (environment === 'shards') return folder.shardFolders;
  return [environment === 'registry' ? folder.registryFolder : folder.journalFolder(environment)];
}

function openFor({ table, targets = [] }: TableChange, path: string, config: StorageConfig): Environment {
  return new Environment({
    path,
    tables: [table, ...targets, progressTable],
    mapBytesMax: config.mapBytesMax,
    diskFreeBytesMin: config.diskFreeBytesMin,
    readersMax: 32,
    commits: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
  });
}

/** Changes the records that an earlier start has not, in key order; yields how many, transaction by transaction. */
function* changeTable(environment: Environment, step: TableChange, format: number): Generator<number> {
  const table = environment.table(step.table);
  const progress = environment.table(progressTable);
  const name = Buffer.from(`${format} ${step.table}`);
  for (;;) {
    const after = progress.getBinary(name);
    const from = after === undefined ? {} : { start: after, exclusiveStart: true };
    const keys = [...table.getKeys({ ...from, limit: recordsPerWrite })];
    if (keys.length === 0) return;
    if (!environment.hasDiskToGrow() || !environment.hasMapSpace()) {
      throw new Error('the disk is full, or the shard (diskFreeBytesMin, mapBytesMax)');
    }
    let passed = 0;
    environment.writeSync(() => {
      let bytes = 0;
      let last: Buffer | undefined;
      for (const key of keys) {
        if (bytes >= bytesPerWrite) break;
        const value = table.getBinary(key);
        if (value === undefined) throw new Error(`a record of ${step.table} cannot be read`);
        step.change({ key, value, table: (name) => environment.table(name) });
        bytes += value.length;
        passed += 1;
        last = key;
      }
      if (last !== undefined) progress.putSync(name, last);
    });
    yield passed;
  }
}
