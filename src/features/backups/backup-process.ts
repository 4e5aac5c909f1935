import '../../core/private-process.ts';
import { setPriority } from 'node:os';
import { type BackupSource, takeBackup } from '../../storage/lmdb/environment/backup.ts';

/** A backup, in a process of its own: devices take precedence on every core, and it can be stopped at any point. */
export interface BackupTask {
  source: BackupSource;
  target: string;
}

export type BackupMessage = { type: 'done'; bytes: number } | { type: 'failed'; reason: string };

const leastPriority = 19;

function report(message: BackupMessage): void {
  process.send?.(message);
}

async function run({ source, target }: BackupTask): Promise<void> {
  setPriority(leastPriority);
  const { files } = await takeBackup(source, target);
  report({ type: 'done', bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) });
}

process.once('message', (task: BackupTask) => {
  run(task)
    .catch((error: Error) => report({ type: 'failed', reason: error.message }))
    .finally(() => process.disconnect());
});
// The server has exited: a copy under way pins pages of a shard that the next server would like to reuse.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
