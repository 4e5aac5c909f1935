import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { progressBar } from '../../cli/output.ts';
import { OperatorError } from '../../core/errors.ts';
import { enteredByOthers } from '../entered-by-others.ts';
import { counted } from './counted.ts';

const mebibyte = 1024 ** 2;
/** Room for one more record in a registry of any size. */
const growthBytes = 16 * mebibyte;

interface RestoreOptions {
  data: string;
  quiet?: boolean;
  json?: boolean;
}

/** Holds the server of a folder before any has opened it. */
async function holdRegistry(path: string): Promise<void> {
  const { openRegistry } = await import('../../maintenance/environments.ts');
  const { DeclaredHold } = await import('../../declarations/declared-hold.ts');
  const { size } = statSync(join(path, 'data.mdb'));
  const registry = openRegistry(path, { mapBytesMax: 2 * size + growthBytes, diskFreeBytesMin: 0 });
  try {
    await new DeclaredHold(registry).begin();
  } finally {
    await registry.close();
  }
}

/** Adds `fleetpost restore`: offline, from a backup to a data folder for `serve`. */
export function addRestoreCommand(program: Command): void {
  program
    .command('restore <dir>')
    .description('restore a backup to an empty data folder')
    .requiredOption('--data <dir>', 'data folder to create; empty or absent')
    .option(
      '--quiet',
      'hold it when served: forwarders, actions, broadcasts and delayed mail wait for "fleetpost release"',
    )
    .option('--json', 'print one JSON document')
    .action(async (dir: string, { data, quiet = false, json }: RestoreOptions) => {
      const { environmentsOf, makeEmptyFolder, readBackup, restoreBackup } = await import(
        '../../storage/lmdb/environment/backup.ts'
      );
      const { formatOf, formatVersion } = await import('../../storage/lmdb/environment/manifest.ts');
      const source = resolve(dir);
      const folder = resolve(data);
      const backup = readBackup(source);
      const isOlder = formatOf(backup.manifest) < formatVersion;
      if (isOlder && quiet) {
        throw new OperatorError(
          `The backup ${source} is of an older version: what holds a server has to be stored after its upgrade. Restore it without --quiet, and start it with "fleetpost serve --paused".`,
        );
      }
      try {
        makeEmptyFolder(folder);
      } catch (error) {
        throw new OperatorError(`${folder} cannot be restored into: ${(error as Error).message}.`);
      }
      const openness = enteredByOthers(folder);
      if (openness !== undefined) process.stderr.write(`fleetpost: ${openness}\n`);
      const bytes = backup.files.reduce((sum, file) => sum + file.bytes, 0);
      const bar = progressBar('Restore {bar} {value} of {total} MiB, {eta_formatted} left', { json });
      let restored = 0;
      bar?.start(Math.ceil(bytes / mebibyte), 0);
      try {
        const onBytes = (chunk: number): void => {
          restored += chunk;
          bar?.update(Math.ceil(restored / mebibyte));
        };
        const hold = (): Promise<void> => holdRegistry(environmentsOf(folder, backup).registryFolder);
        await restoreBackup(source, backup, folder, onBytes, quiet ? hold : undefined);
      } catch (error) {
        throw new OperatorError(
          `Restoring failed: ${(error as Error).message}. ${folder} is not a usable data folder; empty it before the next try.`,
        );
      } finally {
        bar?.stop();
      }
      if (json)
        return console.log(
          JSON.stringify({ data: folder, taken_at: backup.takenAt, bytes, ...(quiet && { held: true }) }),
        );
      console.log(`Restored ${bytes} bytes, as of ${backup.takenAt}, to ${folder}. Serve it with --data.`);
      if (isOlder) console.log('It was made by an older version: the first start upgrades it.');
      if (quiet) console.log('It is held until "fleetpost release".');
    });
}

/** Adds `fleetpost verify`: offline, so that it also works for a folder that no server would open. */
export function addVerifyCommand(program: Command): void {
  program
    .command('verify')
    .description('check every record of a stopped data folder or of a backup')
    .option('--data <dir>', 'the folder', process.env.FLEETPOST_DATA ?? './data')
    .option('--json', 'print one JSON document')
    .action(async ({ data, json }: { data: string; json?: boolean }) => {
      const { verifyFolder } = await import('../../maintenance/verify.ts');
      const bar = progressBar('Verify {bar} {value} of {total} records, {eta_formatted} left', { json });
      const { findings, ...counts } = await verifyFolder(data, {
        start: (records) => bar?.start(records, 0),
        onRecord: () => bar?.increment(),
      }).finally(() => bar?.stop());
      if (findings.count > 0) process.exitCode = 1;
      const { count, sentences } = findings;
      if (json) return console.log(JSON.stringify({ ...counts, findings: sentences, findings_total: count }));
      const found = [
        counted(counts.shards, 'shard'),
        counted(counts.fleets, 'fleet'),
        counted(counts.schemas, 'schema'),
        counted(counts.actions, 'action'),
        `${counted(counts.actionDeadLetters, 'dead letter')} of actions`,
        counted(counts.consumers, 'consumer'),
        counted(counts.forwarders, 'forwarder'),
        counted(counts.devices, 'device'),
        counted(counts.mails, 'mail'),
        counted(counts.logRecords, 'log record'),
        counted(counts.idempotencyKeys, 'idempotency key'),
      ];
      console.log(`${counts.folder}: ${found.join(', ')}.`);
      for (const sentence of sentences) console.log(`- ${sentence}`);
      console.log(count === 0 ? 'OK, no problems found.' : `Problems found: ${count}.`);
    });
}
