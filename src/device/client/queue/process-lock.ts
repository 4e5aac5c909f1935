import { readFileSync, readlinkSync, renameSync, symlinkSync, unlinkSync } from 'node:fs';

const attemptsMax = 20;

/** Another process has it. */
export class LockedError extends Error {}

/**
 * Names a process in a way that outlives its id, which is given out again: id, start and boot. Elsewhere than on Linux
 * it is the id alone. Undefined if there is no such process.
 */
function nameOf(pid: string): string | undefined {
  try {
    // After the name of the program, which may contain anything, the start is the 20th word.
    const [, words = ''] = /^.*\) (.*)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    const [state, start] = [words[0], words.split(' ')[19]];
    // A zombie runs no more; in a container nobody may ever collect it.
    if (state === 'Z' || state === 'X') return undefined;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${pid}.${start}.${boot}`;
  } catch {
    if (process.platform === 'linux') return undefined;
  }
  try {
    process.kill(Number(pid), 0);
    return pid;
  } catch {
    return undefined;
  }
}

/**
 * Lock that one process may hold at a time: a symbolic link that points to its holder, since a link is made whole or
 * not at all. A holder that was killed is replaced.
 */
export class ProcessLock {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  /** Throws a `LockedError` if another process has it. */
  static take(path: string): ProcessLock {
    const own = nameOf(String(process.pid)) ?? String(process.pid);
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      try {
        symlinkSync(own, path);
        return new ProcessLock(path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      const holder = readHolder(path);
      const [pid = ''] = holder?.split('.') ?? [];
      if (holder !== undefined && holder === nameOf(pid))
        throw new LockedError(`${path} is held by process ${pid}.`);
      if (holder !== undefined) removeStale(path, holder);
    }
    throw new LockedError(`${path} is held.`);
  }

  release(): void {
    unlinkSync(this.#path);
  }
}

function readHolder(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** Only one of several that find a link stale moves it away; one that moved a newer link puts it back. */
function removeStale(path: string, holder: string): void {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
    if (readlinkSync(aside) === holder) unlinkSync(aside);
    else renameSync(aside, path);
  } catch {
    // Another one was faster.
  }
}
