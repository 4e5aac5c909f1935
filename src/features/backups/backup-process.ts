import '../../core/private-process.ts';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { setPriority } from 'node:os';
import { type BackupSource, takeBackup } from '../../storage/lmdb/environment/backup.ts';
import { removeOlderBackups } from '../../storage/lmdb/environment/older-backups.ts';

/** A backup, in a process of its own: devices take precedence on every core, and it can be stopped at any point. */
export interface BackupTask {
  source: BackupSource;
  target: string;
  /** True if the server chose the target: then what is cut off is removed. */
  isTimed: boolean;
  /** Removes older ones beside it. */
  keep?: { id: string; count: number };
}

/** End of a backup. */
export type BackupEnd =
  | { type: 'done'; bytes: number; removed: number; reason?: string }
  | { type: 'failed'; reason: string };

export type BackupMessage =
  | BackupEnd
  /** Asks for a hold of an environment's snapshot, which the server answers with any message. */
  | { type: 'hold'; folder: string }
  | { type: 'release' }
  /** A copy was damaged, and is made again. */
  | { type: 'damaged'; folder: string; reason: string };

const leastPriority = 19;

function report(message: BackupMessage): void {
  process.send?.(message);
}

/** Has the server hold a snapshot while this process copies it. */
async function hold(folder: string): Promise<() => void> {
  report({ type: 'hold', folder });
  await once(process, 'message');
  return () => report({ type: 'release' });
}

async function run({ source, target, isTimed, keep }: BackupTask): Promise<void> {
  setPriority(leastPriority);
  const onDamaged = (folder: string, reason: string): void => report({ type: 'damaged', folder, reason });
  const { files } = await takeBackup(source, target, hold, onDamaged).catch(async (error: Error) => {
    // A disk that is full stays full else, and the next backup fails by this one.
    if (isTimed) await rm(target, { recursive: true, force: true });
    throw error;
  });
  const done = { type: 'done' as const, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) };
  try {
    const removed = keep === undefined ? 0 : await removeOlderBackups(target, keep.id, keep.count);
    report({ ...done, removed });
  } catch (error) {
    report({ ...done, removed: 0, reason: `older ones cannot be removed: ${(error as Error).message}` });
  }
}

process.once('message', (task: BackupTask) => {
  run(task)
    .catch((error: Error) => report({ type: 'failed', reason: error.message }))
    .finally(() => process.disconnect());
});
// The server has exited, and holds no snapshot any more: the next one reuses the pages that are copied.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
