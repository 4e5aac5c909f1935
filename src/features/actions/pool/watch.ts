import type { RunError, RunLimits } from '../sandbox/run.ts';
import { cpuTimeExceeded, wallTimeExceeded } from '../sandbox/run-budget.ts';
import { lastBeat, type RunHeartbeat, threadMillisecondsOf } from './run-heartbeat.ts';

const intervalMilliseconds = 50;
/** A thread ends its runs itself; after this much longer it is taken to be unable to. */
const graceMilliseconds = 500;

interface Watched {
  heartbeat: RunHeartbeat;
  limits: RunLimits;
  end(error: RunError): void;
  /** Time when the run was first seen to have begun. */
  begunAt?: number;
  /** The last beat seen, and the thread's CPU time by then. */
  seen: number;
  seenAtThreadMs: number;
}

/**
 * Ends the runs that their threads cannot end: much of the engine (BigInt, `join` of a long array) never checks for
 * interrupts. One timer checks all runs; it stops while there are none.
 */
export class RunWatch {
  readonly #watched = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;

  /** Returns a function that stops watching. */
  add(heartbeat: RunHeartbeat, limits: RunLimits, end: (error: RunError) => void): () => void {
    const watched: Watched = { heartbeat, limits, end, seen: 0, seenAtThreadMs: 0 };
    this.#watched.add(watched);
    this.#timer ??= setInterval(() => this.#check(), intervalMilliseconds);
    return () => {
      this.#watched.delete(watched);
      if (this.#watched.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  #check(): void {
    const now = performance.now();
    for (const watched of this.#watched) {
      const seen = lastBeat(watched.heartbeat);
      // It still waits for a thread, which is not counted against it.
      if (seen === 0) continue;
      watched.begunAt ??= now;
      // Measured in CPU time: a thread that waits long for a processor is not unresponsive.
      const threadMs = threadMillisecondsOf(watched.heartbeat) ?? now;
      if (seen !== watched.seen) {
        watched.seen = seen;
        watched.seenAtThreadMs = threadMs;
      }
      const { limits, begunAt, seenAtThreadMs } = watched;
      const isUnresponsive =
        seen % 2 !== 0 && threadMs - seenAtThreadMs > limits.cpuMilliseconds + graceMilliseconds;
      if (isUnresponsive) watched.end(cpuTimeExceeded(limits));
      else if (now - begunAt > limits.wallMilliseconds + graceMilliseconds)
        watched.end(wallTimeExceeded(limits));
    }
  }
}
