import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { BackupDocument } from '../../../contract/server.ts';
import { sleep } from '../../../core/async.ts';
import { OperatorError } from '../../../core/errors.ts';
import type { AdminClient } from '../../admin-client.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { clientCommand } from '../../options.ts';
import { print, progressBar } from '../../output.ts';

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
      last = await client.request<BackupDocument>('GET', '/backup');
      bar?.update(Math.ceil(last.bytes / mebibyte));
    }
  } finally {
    bar?.stop();
  }
  return last;
}

async function backUp(folder: string, options: ConnectionOptions): Promise<void> {
  const client = connect(options);
  const json = { folder: resolve(folder) };
  const started = await client.request<BackupDocument>('POST', '/backup', { json });
  const backup = await wait(client, started, options);
  if (backup.started_at !== started.started_at) {
    throw new OperatorError(`The server has started another backup since. Check ${json.folder}.`);
  }
  if (backup.state === 'failed') {
    throw new OperatorError(`The backup failed: ${backup.reason}. Remove ${json.folder} and try again.`);
  }
  print(options, backup, `Backed up ${backup.bytes} bytes to ${backup.folder}.`);
}

/** `backup DIR`. */
export function addBackupCommand(program: Command): void {
  clientCommand(
    program,
    'backup <dir>',
    "copy the running server's data into an empty folder on its machine",
  ).action(backUp);
}
