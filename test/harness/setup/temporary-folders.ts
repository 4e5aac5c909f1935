import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, statfsSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const memory = '/dev/shm';
const freeBytesMin = 2 * 1024 ** 3;
/** Servers that were killed with the run may write for a moment more: so it is tried again. */
const removeAtEnd = 'read -r _; for _ in 1 2 3 4 5; do rm -rf "$0" && break; sleep 1; done';

function hasRoomInMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize >= freeBytesMin;
  } catch {
    return false;
  }
}

/**
 * Keeps the temporary folders of all tests in memory: to wait for a disk at each commit takes a good part of a run, and
 * what tests kill are processes, which memory outlives. TMPDIR is theirs then, and that of all that they start; one that
 * is set already stays. In containers there often is no such memory: then they are on disk, as ever.
 */
export default function setup(): void {
  // Each project calls it, and the first one has set it for all.
  if (process.env.TMPDIR !== undefined || !hasRoomInMemory()) return;
  const folder = mkdtempSync(join(memory, 'fleetpost-tests-'));
  // As the one it stands for: PostgreSQL, and servers of some tests, run as other users.
  chmodSync(folder, 0o1777);
  // However this process ends, SIGKILL included: its end of the pipe is closed then.
  const remover = spawn('sh', ['-c', removeAtEnd, folder], {
    detached: true,
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  remover.unref();
  if (remover.stdin instanceof Socket) remover.stdin.unref();
  process.env.TESTS_ON_DISK = tmpdir();
  process.env.TMPDIR = folder;
}
