import { descendants, statOf } from '../../test/harness/machine/process-tree.ts';

/** Length of a tick of /proc/PID/stat: USER_HZ, which Linux fixes at 100 on every common architecture. */
const tickMicroseconds = 10_000;

/**
 * User and system time so far of processes, all their threads and all their descendants, in microseconds.
 * The time of a child that has ended is in its parent's `cutime` and `cstime`, once: so children that come
 * and go, like the backends of PostgreSQL, are counted as well.
 */
export function cpuMicroseconds(processIds: readonly number[]): number {
  const all = new Set(processIds.flatMap((pid) => [pid, ...descendants(pid)]));
  let ticks = 0;
  for (const pid of all) {
    // utime, stime, cutime and cstime: fields 14 to 17 of proc(5).
    for (const field of statOf(pid)?.slice(11, 15) ?? []) ticks += Number(field);
  }
  return ticks * tickMicroseconds;
}
