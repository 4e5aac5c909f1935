import { Worker } from 'node:worker_threads';
import type { Move } from '../../domain/placement.ts';
import type { ProgressReport } from '../progress-report.ts';
import { reshardThreadsMax } from './reshard-environment.ts';

/** A task of one thread. */
export type ReshardTask =
  /** Copies what the new layout has elsewhere from that shard. */
  | { type: 'copy'; shard: number }
  /** Copies the logs of removed shards. A single thread, since their order matters. */
  | { type: 'copyLogs' }
  /** Removes what the complete layout does not have in that shard. */
  | { type: 'remove'; shard: number }
  /** Counts the devices of that shard, once it has exactly its own. */
  | { type: 'count'; shard: number };

/** Start parameters of a thread. */
export interface ReshardTaskStart {
  task: ReshardTask;
  move: Move;
  /** Shard count of the complete layout. */
  shards: number;
  /** Folders of the larger layout. */
  shardFolders: readonly string[];
  mapBytesMax: number;
  /** Records read and devices moved by this task, read by the main thread. */
  counts: Float64Array<SharedArrayBuffer>;
  /** Not 0 once the threads should stop. */
  stop: Int32Array<SharedArrayBuffer>;
}

const reportIntervalMs = 200;

/** Parameters shared by all tasks of a phase. */
export type ReshardPhase = Omit<ReshardTaskStart, 'task' | 'counts' | 'stop'>;

/**
 * Runs the tasks of a phase, as many at once as there are cores. Returns the number of devices moved.
 * @throws what a task threw; the signal's reason, once every thread has stopped
 */
export async function runTasks(
  tasks: readonly ReshardTask[],
  phase: ReshardPhase,
  report: ProgressReport,
  signal: AbortSignal,
): Promise<number> {
  const stop = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const started: ReshardTaskStart[] = [];
  const waiting = [...tasks];
  const sum = (index: number): number => started.reduce((all, { counts }) => all + (counts[index] ?? 0), 0);
  const runNext = async (): Promise<void> => {
    for (let task = waiting.shift(); task !== undefined && !signal.aborted; task = waiting.shift()) {
      const counts = new Float64Array(new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT));
      const start: ReshardTaskStart = { ...phase, task, counts, stop };
      started.push(start);
      await runThread(start);
    }
  };
  const onAbort = (): void => {
    Atomics.store(stop, 0, 1);
  };
  signal.addEventListener('abort', onAbort);
  const ticker = setInterval(() => report.show(sum(0)), reportIntervalMs);
  try {
    const ended = await Promise.allSettled(
      Array.from({ length: reshardThreadsMax }, () => runNext().catch(stopAll)),
    );
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
    signal.throwIfAborted();
  } finally {
    clearInterval(ticker);
    signal.removeEventListener('abort', onAbort);
  }
  report.add(sum(0));
  return sum(1);

  /** A failed task stops the others, so that none is left running. */
  function stopAll(error: unknown): never {
    waiting.length = 0;
    Atomics.store(stop, 0, 1);
    throw error;
  }
}

function runThread(start: ReshardTaskStart): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./reshard-worker.js', import.meta.url), { workerData: start });
    worker.once('error', reject);
    worker.once('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`a thread exited with ${code}`)),
    );
  });
}
