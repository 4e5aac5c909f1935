import { readFileSync } from 'node:fs';

export interface ProcessUsage {
  /** CPU time of its main thread. Unlike wall time it does not blame a process for waiting on a busy machine. */
  cpuMilliseconds: number;
  residentBytes: number;
}

/** Usage of another process so far; undefined where the system does not report it, or if it has ended. */
export function usageOf(pid: number): ProcessUsage | undefined {
  try {
    const nanoseconds = Number.parseInt(readFileSync(`/proc/${pid}/schedstat`, 'latin1'), 10);
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
    if (kilobytes === undefined) return undefined;
    return { cpuMilliseconds: nanoseconds / 1e6, residentBytes: 1_024 * Number(kilobytes) };
  } catch {
    return undefined;
  }
}
