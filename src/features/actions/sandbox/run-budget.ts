import {
  beat,
  markBegun,
  type RunHeartbeat,
  threadMilliseconds,
  toggleEngine,
} from '../pool/run-heartbeat.ts';
import type { RunError, RunLimits } from './run.ts';

/** Interval at which the system updates a thread's CPU time. */
const tickMilliseconds = 10;

/** The CPU and wall time of a run, and their limits. */
export class RunBudget {
  readonly #limits: RunLimits;
  readonly #heartbeat: RunHeartbeat;
  readonly #startedAt = performance.now();
  readonly #threadStartedAt = threadMilliseconds();
  #engineMilliseconds = 0;
  #enteredAt: number | undefined;

  constructor(limits: RunLimits, heartbeat: RunHeartbeat) {
    this.#limits = limits;
    this.#heartbeat = heartbeat;
    markBegun(heartbeat);
  }

  get wallMilliseconds(): number {
    return performance.now() - this.#startedAt;
  }

  /** Capped by the thread's CPU time, where the system reports it. */
  get cpuMilliseconds(): number {
    const thread = threadMilliseconds();
    const engine = this.#engine;
    if (thread === undefined || this.#threadStartedAt === undefined) return engine;
    return Math.min(engine, thread - this.#threadStartedAt + tickMilliseconds);
  }

  get wallMillisecondsLeft(): number {
    return Math.max(0, this.#limits.wallMilliseconds - this.wallMilliseconds);
  }

  enter(): void {
    this.#enteredAt = performance.now();
    toggleEngine(this.#heartbeat);
  }

  leave(): void {
    this.#engineMilliseconds = this.#engine;
    this.#enteredAt = undefined;
    toggleEngine(this.#heartbeat);
  }

  /** Checks the limits. Called by the engine repeatedly, wherever it can be interrupted. */
  exceeded(): RunError | undefined {
    beat(this.#heartbeat);
    const { cpuMilliseconds, wallMilliseconds } = this.#limits;
    // Engine time is cheap to read and never less than CPU time.
    if (this.#engine > cpuMilliseconds && this.cpuMilliseconds > cpuMilliseconds)
      return cpuTimeExceeded(this.#limits);
    return this.wallMilliseconds > wallMilliseconds ? wallTimeExceeded(this.#limits) : undefined;
  }

  get #engine(): number {
    const entered = this.#enteredAt === undefined ? 0 : performance.now() - this.#enteredAt;
    return this.#engineMilliseconds + entered;
  }
}

export function cpuTimeExceeded({ cpuMilliseconds }: RunLimits): RunError {
  return { code: 'cpu_time_exceeded', msg: `The run used more than ${cpuMilliseconds} ms of CPU time.` };
}

export function wallTimeExceeded({ wallMilliseconds }: RunLimits): RunError {
  return { code: 'wall_time_exceeded', msg: `The run took more than ${wallMilliseconds} ms.` };
}
