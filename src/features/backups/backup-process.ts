import '../../core/private-process.ts';
import { setPriority } from 'node:os';
import { type BackupSource, takeBackup } from '../../storage/lmdb/environment/backup.ts';

/** A backup in a process of its own: devices go first on every core, and it can be stopped in the middle. */
export interface BackupTask {
  source: BackupSource;
  target: string;
}

export type BackupMessage = { type: 'done'; bytes: number } | { type: 'failed'; reason: string };

const leastPriority = 19;

function tell(message: BackupMessage): void {
  process.send?.(message);
}

async function run({ source, target }: BackupTask): Promise<void> {
  setPriority(leastPriority);
  const { files } = await takeBackup(source, target);
  tell({ type: 'done', bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) });
}

process.once('message', (task: BackupTask) => {
  run(task)
    .catch((error: Error) => tell({ type: 'failed', reason: error.message }))
    .finally(() => process.disconnect());
});
// The server is gone: a copy under way holds pages of a shard that the next server would like to reuse.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
