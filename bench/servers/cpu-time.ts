import { readdirSync, readFileSync } from 'node:fs';

/** Length of a tick of /proc/PID/stat: USER_HZ, which Linux fixes at 100 on every common architecture. */
const tickMicroseconds = 10_000;

interface ProcessTimes {
  parent: number;
  ticks: number;
}

/** Fields of /proc/PID/stat from the third on; the second is a name in brackets that may hold anything. */
function readTimes(pid: number): ProcessTimes | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  // utime, stime, cutime and cstime: fields 14 to 17 of proc(5).
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { parent: Number(fields[1]), ticks };
}

/**
 * User and system time so far of processes, all their threads and all their descendants, in microseconds.
 * The time of a child that has ended is in its parent's `cutime` and `cstime`, once: so children that come
 * and go, like the backends of PostgreSQL, are counted as well.
 */
export function cpuMicroseconds(processIds: readonly number[]): number {
  const times = new Map<number, ProcessTimes>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    const read = Number.isInteger(pid) ? readTimes(pid) : undefined;
    if (read) times.set(pid, read);
  }
  const belongs = (pid: number): boolean => {
    const parent = times.get(pid)?.parent;
    return processIds.includes(pid) || (parent !== undefined && parent > 1 && belongs(parent));
  };
  let ticks = 0;
  for (const [pid, own] of times) if (belongs(pid)) ticks += own.ticks;
  return ticks * tickMicroseconds;
}
