import { spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { OperatorError } from '../../../core/errors.ts';

/**
 * A folder held by one process: the kernel's own lock (flock) on its file `lock`. It ends with the process,
 * however that ends; of two that come at once one has it; and it holds between containers that share the folder,
 * where a process id says nothing. Node has no call for it, but a lock belongs to the open file and not to who
 * asked for it: flock(1) of util-linux takes it on a descriptor of ours. The file names its holder for people
 * and is never removed, since a lock on a removed file keeps nobody out.
 */
export class FolderLock {
  #file: number | undefined;

  private constructor(file: number) {
    this.#file = file;
  }

  /** @throws OperatorError when another process holds the folder. */
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
        `The data folder ${folder} cannot be locked: flock, of util-linux, cannot be run (${error.message}).`,
      );
    }
    throw new OperatorError(`The data folder ${folder} is in use by ${holderOf(path)}: stop that first.`);
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
    // On a full disk the lock holds without a name.
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
