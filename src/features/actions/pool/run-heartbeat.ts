import { openSync, readFileSync, readlinkSync, readSync } from 'node:fs';

const text = Buffer.alloc(64);
let file: number | undefined;

/**
 * CPU time of this thread, or undefined where the system does not report it. Unlike wall time it does not blame an
 * action for waiting on a busy machine. Node has it only from version 23.9; before, Linux' file has it: nanoseconds,
 * then other figures.
 */
export function threadMilliseconds(): number | undefined {
  try {
    file ??= openSync('/proc/thread-self/schedstat', 'r');
    const length = readSync(file, text, 0, text.length, 0);
    return millisecondsIn(text.toString('latin1', 0, length));
  } catch {
    return undefined;
  }
}

/** The system's id of this thread; 0 where it does not report it. */
function threadNumber(): number {
  try {
    return Number(readlinkSync('/proc/thread-self').split('/').at(-1));
  } catch {
    return 0;
  }
}

/** CPU time of any thread of this process, at a higher cost. */
function millisecondsOfThread(number: number): number | undefined {
  try {
    return millisecondsIn(readFileSync(`/proc/self/task/${number}/schedstat`, 'latin1'));
  } catch {
    return undefined;
  }
}

function millisecondsIn(schedstat: string): number {
  return Number.parseInt(schedstat, 10) / 1e6;
}

/** Shared memory in which a thread reports the progress of a run to the pool's `RunWatch`. */
export type RunHeartbeat = Int32Array;

const beatsAt = 0;
const threadAt = 1;
/** Id of this thread. */
const own = threadNumber();

export function newHeartbeat(): RunHeartbeat {
  return new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
}

/**
 * Called by the thread when the run starts. Before that, the run waits for a thread, which is not counted against it.
 */
export function markBegun(heartbeat: RunHeartbeat): void {
  Atomics.store(heartbeat, threadAt, own);
  Atomics.add(heartbeat, beatsAt, 2);
}

/** Called when the engine starts and stops: the count is odd while it runs. */
export function toggleEngine(heartbeat: RunHeartbeat): void {
  Atomics.add(heartbeat, beatsAt, 1);
}

/** Advances the count and keeps its parity. */
export function beat(heartbeat: RunHeartbeat): void {
  Atomics.add(heartbeat, beatsAt, 2);
}

/** A count that changes with each beat: odd while the engine runs, 0 before the run has begun. */
export function lastBeat(heartbeat: RunHeartbeat): number {
  return Atomics.load(heartbeat, beatsAt);
}

/** CPU time of the run's thread, or undefined where the system does not report it. */
export function threadMillisecondsOf(heartbeat: RunHeartbeat): number | undefined {
  return millisecondsOfThread(Atomics.load(heartbeat, threadAt));
}
