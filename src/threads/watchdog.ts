import type { Log } from '../core/telemetry/log.ts';

/**
 * Ends the whole process at once, with a reason, for its parent to start again. Nothing is lost, since all
 * that was answered is on disk; an orderly end needs threads that still work.
 */
export function endProcess(log: Log, reason: string, error?: Error): void {
  log.fatal({ err: error }, `${reason}; the process ends`);
  process.kill(process.pid, 'SIGKILL');
}

/** Of each thread: its beats, its stalls, and how long they were in all, in milliseconds. */
const cellsPerThread = 3;
const beatMs = 250;

export interface StallLimits {
  /** A stall that is longer is logged and counted. */
  stallMilliseconds: number;
  /** A thread that has not come back after this is not waited for any longer. */
  stallEndSeconds: number;
}

export interface Stalls {
  count: number;
  seconds: number;
}

/** Memory in which threads show each other that they are alive: the workers by their index, then the main thread. */
export function allocateHeartbeats(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(threads * cellsPerThread * Float64Array.BYTES_PER_ELEMENT);
}

export function stallsOf(beats: SharedArrayBuffer, thread: number): Stalls {
  const cells = cellsOf(beats, thread);
  return { count: cells[1] ?? 0, seconds: (cells[2] ?? 0) / 1_000 };
}

function cellsOf(beats: SharedArrayBuffer, thread: number): Float64Array<SharedArrayBuffer> {
  return new Float64Array(beats, thread * cellsPerThread * Float64Array.BYTES_PER_ELEMENT, cellsPerThread);
}

/** Another thread as a watch sees it. */
interface Other {
  name: string;
  cells: Float64Array<SharedArrayBuffer>;
  beats: number;
  /** Beats of the watch's own in which it has not beaten. */
  silentBeats: number;
}

export interface EventLoopWatchdogOptions {
  beats: SharedArrayBuffer;
  thread: number;
  /** Threads that this one ends the process over when they do not come back. */
  watched: readonly { name: string; thread: number }[];
  limits: StallLimits;
  log: Log;
}

/**
 * Beats for the thread it is made on, sees by its own lateness that the event loop stalled, and watches
 * others. Their silence is counted in beats of this thread: where all of them stood still together, since the
 * process was stopped or the machine asleep, that is one beat, whatever the clock says.
 */
export class EventLoopWatchdog {
  readonly #options: EventLoopWatchdogOptions;
  readonly #cells: Float64Array<SharedArrayBuffer>;
  readonly #others: readonly Other[];
  readonly #timer: NodeJS.Timeout;
  #lastMs = performance.now();

  constructor(options: EventLoopWatchdogOptions) {
    const { beats, thread, watched } = options;
    this.#options = options;
    this.#cells = cellsOf(beats, thread);
    this.#others = watched.map((other) => ({
      name: other.name,
      cells: cellsOf(beats, other.thread),
      beats: 0,
      silentBeats: 0,
    }));
    // From here on its silence counts, though it never came to its first turn.
    this.#add(0, 1);
    this.#timer = setInterval(() => this.#tick(), beatMs).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Tells the others that this thread goes on, though its turn is a long one. */
  beat(): void {
    this.#add(0, 1);
  }

  #tick(): void {
    const { limits, log } = this.#options;
    const nowMs = performance.now();
    const lateMs = nowMs - this.#lastMs - beatMs;
    this.#lastMs = nowMs;
    this.beat();
    if (lateMs >= limits.stallMilliseconds) {
      this.#add(1, 1);
      this.#add(2, lateMs);
      log.warn({ milliseconds: Math.round(lateMs) }, 'the event loop stood still');
    }
    for (const other of this.#others) this.#watch(other);
  }

  #watch(other: Other): void {
    const { limits, log } = this.#options;
    const beats = other.cells[0] ?? 0;
    // One that has not begun yet is not silent.
    other.silentBeats = beats === other.beats && beats > 0 ? other.silentBeats + 1 : 0;
    other.beats = beats;
    if (other.silentBeats * beatMs >= limits.stallEndSeconds * 1_000) {
      endProcess(log, `${other.name} has stood still for ${limits.stallEndSeconds} s (stallEndSeconds)`);
    }
  }

  #add(index: number, value: number): void {
    this.#cells[index] = (this.#cells[index] ?? 0) + value;
  }
}
