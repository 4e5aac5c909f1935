import { resolve } from 'node:path';
import type { Command } from 'commander';
import { OperatorError } from '../../core/errors.ts';
import { enteredByOthers } from '../entered-by-others.ts';
import { progressBar } from './verify-command.ts';

const mebibyte = 1024 ** 2;

/** `fleetpost restore`: offline, from a backup to a data folder that `serve` takes. */
export function addRestoreCommand(program: Command): void {
  program
    .command('restore <dir>')
    .description('bring a backup back into an empty data folder')
    .requiredOption('--data <dir>', 'the data folder to make; empty, or not there yet')
    .option('--json', 'print one JSON document')
    .action(async (dir: string, { data, json }: { data: string; json?: boolean }) => {
      const { makeEmptyFolder, readBackup, restoreBackup } = await import(
        '../../storage/lmdb/environment/backup.ts'
      );
      const source = resolve(dir);
      const folder = resolve(data);
      const backup = readBackup(source);
      try {
        makeEmptyFolder(folder);
      } catch (error) {
        throw new OperatorError(`${folder} cannot be restored into: ${(error as Error).message}.`);
      }
      const openness = enteredByOthers(folder);
      if (openness !== undefined) process.stderr.write(`fleetpost: ${openness}\n`);
      const bytes = backup.files.reduce((sum, file) => sum + file.bytes, 0);
      const bar = progressBar('Restore', 'MiB', !json);
      let restored = 0;
      bar?.start(Math.ceil(bytes / mebibyte), 0);
      try {
        await restoreBackup(source, backup, folder, (chunk) => {
          restored += chunk;
          bar?.update(Math.ceil(restored / mebibyte));
        });
      } catch (error) {
        throw new OperatorError(
          `Restoring failed: ${(error as Error).message}. ${folder} is not a data folder; empty it before the next try.`,
        );
      } finally {
        bar?.stop();
      }
      if (json) return console.log(JSON.stringify({ data: folder, taken_at: backup.takenAt, bytes }));
      console.log(`Restored ${bytes} bytes, as of ${backup.takenAt}, to ${folder}. Serve it with --data.`);
    });
}
