import { resolve } from 'node:path';
import type { Command } from 'commander';
import { pathTo } from '../../../contract/routes/path.ts';
import type { BackupDocument } from '../../../contract/server.ts';
import { sleep } from '../../../core/async.ts';
import { OperatorError } from '../../../core/errors.ts';
import type { AdminClient } from '../../admin-client.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { clientCommand, integerOption } from '../../options.ts';
import { print, printableLines, progressBar } from '../../output.ts';

const path = pathTo('/backup', {});
const pollIntervalMs = 200;
const mebibyte = 1024 ** 2;

/** Waits until the backup is no longer running; it also runs without being polled. */
async function wait(
  client: AdminClient,
  backup: BackupDocument,
  options: ConnectionOptions,
): Promise<BackupDocument> {
  const bar = progressBar('Backup {bar} {value} of {total} MiB, {eta_formatted} left', options);
  let last = backup;
  bar?.start(Math.ceil(last.bytes_total / mebibyte), 0);
  try {
    while (last.state === 'running') {
      await sleep(pollIntervalMs);
      last = await client.request('GET', path);
      bar?.update(Math.ceil(last.bytes / mebibyte));
    }
  } finally {
    bar?.stop();
  }
  return last;
}

interface BackupOptions extends ConnectionOptions {
  keep?: number;
}

async function backUp(dir: string | undefined, options: BackupOptions): Promise<void> {
  const { keep } = options;
  if (dir !== undefined && keep !== undefined) {
    throw new OperatorError(
      '--keep is for backups in backupFolder, each under its time: leave out the folder, or --keep.',
    );
  }
  const client = connect(options);
  const json = { ...(dir !== undefined && { folder: resolve(dir) }), keep };
  const started = await client.request('POST', path, { json });
  const backup = await wait(client, started, options);
  if (backup.started_at !== started.started_at) {
    throw new OperatorError(`The server has started another backup since. Check ${started.folder}.`);
  }
  if (backup.state === 'failed') {
    throw new OperatorError(
      `The backup failed: ${backup.reason}. ${dir === undefined ? 'Try again.' : `Remove ${backup.folder} and try again.`}`,
    );
  }
  const removed = keep === undefined ? '' : ` Older ones removed: ${backup.removed}.`;
  if (backup.reason !== null) process.stderr.write(`fleetpost: ${printableLines(backup.reason)}.\n`);
  print(options, backup, `Backed up ${backup.bytes} bytes to ${backup.folder}.${removed}`);
}

/** `backup [DIR]`. */
export function addBackupCommand(program: Command): void {
  clientCommand(
    program,
    'backup [dir]',
    "copy the running server's data into an empty folder on its machine; without one, under the time in its backupFolder",
  )
    .option(
      '--keep <n>',
      'then remove older ones in backupFolder: whole backups of this server, but the newest n',
      integerOption(1, 10_000),
    )
    .action(backUp);
}
