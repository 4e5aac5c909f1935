import type { Figures } from '../result.ts';
import { cpuMicroseconds } from './cpu-time.ts';
import type { RunningServer } from './subject.ts';
import { type ThreadTimes, threadFigures } from './thread-times.ts';

/** CPU time that a server has needed so far, in microseconds. */
export interface ServerTimes {
  total: number;
  /** CPU time of its database within the total, where that is a server of its own. */
  database?: number;
  threads?: ThreadTimes;
}

export function serverTimes(server: RunningServer): ServerTimes {
  const databaseIds = server.databaseProcessIds?.() ?? [];
  const threads = server.threadTimes?.();
  return {
    total: cpuMicroseconds(server.processIds()),
    ...(databaseIds.length > 0 && { database: cpuMicroseconds(databaseIds) }),
    ...(threads && { threads }),
  };
}

/** CPU time of each operation between two readings, with nodes and database apart. */
export function cpuFigures(before: ServerTimes, after: ServerTimes, operations: number): Figures {
  const total = (after.total - before.total) / operations;
  const threads = threadFigures(before.threads, after.threads, operations);
  if (before.database === undefined || after.database === undefined) {
    return { cpuMicrosecondsPerOperation: total, ...threads };
  }
  const database = (after.database - before.database) / operations;
  return {
    cpuMicrosecondsPerOperation: total,
    nodesMicrosecondsPerOperation: total - database,
    databaseMicrosecondsPerOperation: database,
    ...threads,
  };
}
