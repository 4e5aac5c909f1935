import { begin, change, type RunHeartbeat, sign, threadMilliseconds } from '../pool/run-heartbeat.ts';
import type { RunError, RunLimits } from './run.ts';

/** The system brings a thread's time up to date this often. */
const tickMilliseconds = 10;

/** The time that a run may take, and has taken. */
export class RunBudget {
  readonly #limits: RunLimits;
  readonly #progress: RunHeartbeat;
  readonly #startedAt = performance.now();
  readonly #threadStartedAt = threadMilliseconds();
  #engineMilliseconds = 0;
  #enteredAt: number | undefined;

  constructor(limits: RunLimits, progress: RunHeartbeat) {
    this.#limits = limits;
    this.#progress = progress;
    begin(progress);
  }

  get wallMilliseconds(): number {
    return performance.now() - this.#startedAt;
  }

  /** Never more than what the thread had of a processor, where the system says that. */
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
    change(this.#progress);
  }

  leave(): void {
    this.#engineMilliseconds = this.#engine;
    this.#enteredAt = undefined;
    change(this.#progress);
  }

  /** Asked by the engine again and again, wherever it can be stopped. */
  exceeded(): RunError | undefined {
    sign(this.#progress);
    const { cpuMilliseconds, wallMilliseconds } = this.#limits;
    // The engine's time is cheap to tell and never less than the processor's.
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
  return { code: 'cpu_time_exceeded', msg: `The run computed for more than ${cpuMilliseconds} ms.` };
}

export function wallTimeExceeded({ wallMilliseconds }: RunLimits): RunError {
  return { code: 'wall_time_exceeded', msg: `The run took more than ${wallMilliseconds} ms.` };
}
