import { spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { OperatorError } from '../../../core/errors.ts';

/**
 * Locks a folder by the kernel's lock (flock) on its file `lock`. It ends with the process, however that ends; it is
 * atomic; and it works between containers that share the folder, where a process id means nothing. Node has no call
 * for it, but a lock belongs to the open file, not to the process that requested it: flock(1) of util-linux takes it
 * on our descriptor. The file names its holder for people. It is never removed, since a lock on a removed file
 * excludes nobody.
 */
export class FolderLock {
  #file: number | undefined;

  private constructor(file: number) {
    this.#file = file;
  }

  /** @throws OperatorError if another process holds the lock. */
  static take(folder: string): FolderLock {
    const path = join(folder, 'lock');
    const file = openSync(path, 'a', 0o644);
    const { status, error } = spawnSync('flock', ['-x', '-n', '3'], {
      stdio: ['ignore', 'ignore', 'ignore', file],
    });
    if (status === 0) {
      nameHolder(file);
      return new FolderLock(file);
    }
    closeSync(file);
    if (error !== undefined) {
      throw new OperatorError(
        `The data folder ${folder} cannot be locked: flock failed to run (${error.message}). Install util-linux.`,
      );
    }
    throw new OperatorError(`The data folder ${folder} is in use by ${holderOf(path)}. Stop that first.`);
  }

  release(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}

function nameHolder(file: number): void {
  try {
    ftruncateSync(file);
    writeSync(file, JSON.stringify({ pid: process.pid, host: hostname() }));
  } catch {
    // On a full disk the lock works without a name.
  }
}

function holderOf(path: string): string {
  try {
    const { pid, host } = JSON.parse(readFileSync(path, 'utf8')) as { pid?: unknown; host?: unknown };
    if (!Number.isInteger(pid)) return 'another process';
    return host === hostname() ? `process ${pid}` : `process ${pid} of another host or container`;
  } catch {
    return 'another process';
  }
}
