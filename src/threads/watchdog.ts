import type { Settings } from '../core/config/settings.ts';
import type { Log } from '../core/telemetry/log.ts';

/**
 * Kills the process, for its parent to restart. Nothing is lost, since everything answered is on disk; an orderly end
 * would need threads that still work.
 */
export function endProcess(log: Log, reason: string, error?: Error): void {
  log.fatal({ err: error }, `${reason}; process ends`);
  process.kill(process.pid, 'SIGKILL');
}

/** Cells per thread: heartbeats, stalls, and milliseconds stalled in all. */
const cellsPerThread = 3;
const heartbeatMs = 250;

export interface StallLimits {
  /** Stalls that are longer are logged and counted. */
  stallMilliseconds: number;
  /** The process ends after a stall this long of a thread that serves devices. */
  stallEndSeconds: number;
  /** The same of the main thread, without which devices are served on. */
  mainStallEndSeconds: number;
}

type EndLimit = 'stallEndSeconds' | 'mainStallEndSeconds';

export interface Stalls {
  count: number;
  seconds: number;
}

/** Number of a thread in heartbeat memory; workers come first, by their index. */
export const mainThread = (workers: number): number => workers;
export const acceptorThread = (workers: number): number => workers + 1;

/** Shared heartbeat memory of the workers, the main thread and the acceptor. */
export function allocateHeartbeats(workers: number): SharedArrayBuffer {
  return new SharedArrayBuffer((workers + 2) * cellsPerThread * Float64Array.BYTES_PER_ELEMENT);
}

export function stallsOf(heartbeats: SharedArrayBuffer, thread: number): Stalls {
  const cells = cellsOf(heartbeats, thread);
  return { count: cells[1] ?? 0, seconds: (cells[2] ?? 0) / 1_000 };
}

function cellsOf(heartbeats: SharedArrayBuffer, thread: number): Float64Array<SharedArrayBuffer> {
  return new Float64Array(
    heartbeats,
    thread * cellsPerThread * Float64Array.BYTES_PER_ELEMENT,
    cellsPerThread,
  );
}

/** A thread under watch. */
interface WatchedThread {
  name: string;
  limit: EndLimit;
  cells: Float64Array<SharedArrayBuffer>;
  heartbeats: number;
  /** Heartbeats of the watching thread since the last one of this thread. */
  missedHeartbeats: number;
}

export interface EventLoopWatchdogOptions {
  heartbeats: SharedArrayBuffer;
  thread: number;
  /** Threads whose stall ends the process. */
  watched: readonly { name: string; thread: number; limit?: EndLimit }[];
  settings: Settings<StallLimits>;
  log: Log;
}

/**
 * Counts heartbeats of its own thread, detects stalls of its event loop by its own lateness, and watches other threads.
 * Their silence is counted in heartbeats of this thread: if all stood still together, since the process was stopped or
 * the machine asleep, that is one heartbeat, whatever the clock says.
 */
export class EventLoopWatchdog {
  readonly #options: EventLoopWatchdogOptions;
  readonly #cells: Float64Array<SharedArrayBuffer>;
  #others: readonly WatchedThread[];
  readonly #timer: NodeJS.Timeout;
  #lastMs = performance.now();

  constructor(options: EventLoopWatchdogOptions) {
    const { heartbeats, thread, watched } = options;
    this.#options = options;
    this.#cells = cellsOf(heartbeats, thread);
    this.#others = watched.map((other) => ({
      name: other.name,
      limit: other.limit ?? 'stallEndSeconds',
      cells: cellsOf(heartbeats, other.thread),
      heartbeats: 0,
      missedHeartbeats: 0,
    }));
    // From here on silence counts, even if the first turn never comes.
    this.#add(0, 1);
    this.#timer = setInterval(() => this.#tick(), heartbeatMs).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Watches no other thread any more, but is watched on: threads that are told to end fall silent before they have. */
  unwatch(): void {
    this.#others = [];
  }

  /** Signals progress during a long turn. */
  beat(): void {
    this.#add(0, 1);
  }

  #tick(): void {
    const { settings, log } = this.#options;
    const nowMs = performance.now();
    const lateMs = nowMs - this.#lastMs - heartbeatMs;
    this.#lastMs = nowMs;
    this.beat();
    if (lateMs >= settings.current.stallMilliseconds) {
      this.#add(1, 1);
      this.#add(2, lateMs);
      log.warn({ milliseconds: Math.round(lateMs) }, 'event loop stalled');
    }
    for (const other of this.#others) this.#watch(other);
  }

  #watch(other: WatchedThread): void {
    const { settings, log } = this.#options;
    const heartbeats = other.cells[0] ?? 0;
    // A thread that has not started yet is not silent.
    other.missedHeartbeats =
      heartbeats === other.heartbeats && heartbeats > 0 ? other.missedHeartbeats + 1 : 0;
    other.heartbeats = heartbeats;
    const { stallEndSeconds, mainStallEndSeconds } = settings.current;
    const endSeconds = other.limit === 'stallEndSeconds' ? stallEndSeconds : mainStallEndSeconds;
    if (other.missedHeartbeats * heartbeatMs >= endSeconds * 1_000) {
      endProcess(log, `${other.name} stalled for ${endSeconds} s (${other.limit})`);
    }
  }

  #add(index: number, value: number): void {
    this.#cells[index] = (this.#cells[index] ?? 0) + value;
  }
}
