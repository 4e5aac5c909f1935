import { readdirSync, readFileSync } from 'node:fs';
import type { Figures } from '../result.ts';

/** CPU time of a server's threads, in microseconds. */
export interface ThreadTimes {
  main: number;
  /** Those that carry a front end and a shard each. */
  workers: number;
  actions: number;
  /** The acceptor, syncs of the disk, compilers, collectors of garbage: what all of the above share. */
  others: number;
}

/** CPU time of each group per operation between two readings. */
export function threadFigures(
  before: ThreadTimes | undefined,
  after: ThreadTimes | undefined,
  operations: number,
): Figures {
  if (before === undefined || after === undefined) return {};
  const per = (group: keyof ThreadTimes): number => (after[group] - before[group]) / operations;
  return {
    workersMicrosecondsPerOperation: per('workers'),
    mainThreadMicrosecondsPerOperation: per('main'),
    actionThreadsMicrosecondsPerOperation: per('actions'),
    otherThreadsMicrosecondsPerOperation: per('others'),
  };
}

function threadsOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).map(Number);
}

/** Time on a processor: in nanoseconds, where /proc/PID/stat has ticks of 10 ms. */
function microsecondsOf(pid: number, thread: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1_000;
  } catch {
    // It has ended meanwhile.
    return 0;
  }
}

/**
 * Tells a server's threads apart by when they were started, since their names are all alike: the main one, then
 * Node's own, then the workers; those that run actions come with the first run, after this has been made.
 */
export class ThreadClock {
  readonly #pid: number;
  readonly #workers: ReadonlySet<number>;
  readonly #known: ReadonlySet<number>;

  constructor(pid: number, shards: number) {
    const threads = threadsOf(pid).sort((a, b) => a - b);
    this.#pid = pid;
    this.#known = new Set(threads);
    this.#workers = new Set(threads.slice(-shards));
  }

  read(): ThreadTimes {
    const times = { main: 0, workers: 0, actions: 0, others: 0 };
    for (const thread of threadsOf(this.#pid))
      times[this.#groupOf(thread)] += microsecondsOf(this.#pid, thread);
    return times;
  }

  #groupOf(thread: number): keyof ThreadTimes {
    if (thread === this.#pid) return 'main';
    if (this.#workers.has(thread)) return 'workers';
    return this.#known.has(thread) ? 'others' : 'actions';
  }
}
