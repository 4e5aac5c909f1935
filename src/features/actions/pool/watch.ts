import type { RunError, RunLimits } from '../sandbox/run.ts';
import { cpuTimeExceeded, wallTimeExceeded } from '../sandbox/run-budget.ts';
import { lastSign, type RunHeartbeat, threadMillisecondsOf } from './run-heartbeat.ts';

const intervalMilliseconds = 50;
/** A thread ends its runs itself; this is how much later it is taken to be unable to. */
const graceMilliseconds = 500;

interface Watched {
  progress: RunHeartbeat;
  limits: RunLimits;
  end(error: RunError): void;
  /** When the run was first seen to have begun. */
  begunAt?: number;
  /** The last sign of it, and its thread's time by then. */
  seen: number;
  seenAtThreadMs: number;
}

/**
 * Ends the runs that their threads cannot end: much of the engine (BigInt, `join` of a long array) never asks
 * whether it may go on. One timer looks at all runs, and there is none while there are no runs.
 */
export class RunWatch {
  readonly #watched = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;

  /** Returns how to end the watching. */
  add(progress: RunHeartbeat, limits: RunLimits, end: (error: RunError) => void): () => void {
    const watched: Watched = { progress, limits, end, seen: 0, seenAtThreadMs: 0 };
    this.#watched.add(watched);
    this.#timer ??= setInterval(() => this.#look(), intervalMilliseconds);
    return () => {
      this.#watched.delete(watched);
      if (this.#watched.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  #look(): void {
    const now = performance.now();
    for (const watched of this.#watched) {
      const seen = lastSign(watched.progress);
      // It still waits for a thread, which may take a while and is not its own doing.
      if (seen === 0) continue;
      watched.begunAt ??= now;
      // By its own time: one that waits for a processor for long is not deaf.
      const threadMs = threadMillisecondsOf(watched.progress) ?? now;
      if (seen !== watched.seen) {
        watched.seen = seen;
        watched.seenAtThreadMs = threadMs;
      }
      const { limits, begunAt, seenAtThreadMs } = watched;
      const isDeaf = seen % 2 !== 0 && threadMs - seenAtThreadMs > limits.cpuMilliseconds + graceMilliseconds;
      if (isDeaf) watched.end(cpuTimeExceeded(limits));
      else if (now - begunAt > limits.wallMilliseconds + graceMilliseconds)
        watched.end(wallTimeExceeded(limits));
    }
  }
}
