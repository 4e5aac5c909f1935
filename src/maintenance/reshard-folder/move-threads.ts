import { Worker } from 'node:worker_threads';
import type { Move } from '../../storage/lmdb/environment/manifest.ts';
import { moveThreadsMax } from './move-environment.ts';
import type { MoveReport } from './move-report.ts';

/** What one thread does of a move between two shard counts. */
export type MoveTask =
  /** Copies from that shard what the new layout has elsewhere. */
  | { type: 'copy'; shard: number }
  /** Copies the logs of the shards that the new layout does not have. One thread, for their order counts. */
  | { type: 'copyLogs' }
  /** Removes from that shard what the layout that is whole does not have there. */
  | { type: 'remove'; shard: number }
  /** Counts the devices of that shard, once it has all that are its own and no others. */
  | { type: 'count'; shard: number };

/** Given to the thread at its start. */
export interface MoveTaskStart {
  task: MoveTask;
  move: Move;
  /** The layout that is whole. */
  shards: number;
  /** Of the larger layout. */
  shardFolders: readonly string[];
  mapBytesMax: number;
  /** Records passed and devices moved by this task: the main thread reads along. */
  counts: Float64Array<SharedArrayBuffer>;
  /** Not 0 once the threads of the move should stop. */
  stop: Int32Array<SharedArrayBuffer>;
}

const reportIntervalMs = 200;

/** What all tasks of a phase are given alike. */
export type MovePhase = Omit<MoveTaskStart, 'task' | 'counts' | 'stop'>;

/**
 * Runs the tasks of one phase, as many at once as there are cores. Answers how many devices they moved.
 * @throws what a task threw; and the signal's reason, once every thread has come to a stop.
 */
export async function runTasks(
  tasks: readonly MoveTask[],
  phase: MovePhase,
  report: MoveReport,
  signal: AbortSignal,
): Promise<number> {
  const stop = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const started: MoveTaskStart[] = [];
  const waiting = [...tasks];
  const sum = (index: number): number => started.reduce((all, { counts }) => all + (counts[index] ?? 0), 0);
  const runNext = async (): Promise<void> => {
    for (let task = waiting.shift(); task !== undefined && !signal.aborted; task = waiting.shift()) {
      const counts = new Float64Array(new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT));
      const start: MoveTaskStart = { ...phase, task, counts, stop };
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
      Array.from({ length: moveThreadsMax }, () => runNext().catch(stopAll)),
    );
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
    signal.throwIfAborted();
  } finally {
    clearInterval(ticker);
    signal.removeEventListener('abort', onAbort);
  }
  report.add(sum(0));
  return sum(1);

  /** One that failed stops the others, so that none is left running. */
  function stopAll(error: unknown): never {
    waiting.length = 0;
    Atomics.store(stop, 0, 1);
    throw error;
  }
}

function runThread(start: MoveTaskStart): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./move-worker.js', import.meta.url), { workerData: start });
    worker.once('error', reject);
    worker.once('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`a thread ended with ${code}`)),
    );
  });
}
