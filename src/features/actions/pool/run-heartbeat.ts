import { openSync, readFileSync, readlinkSync, readSync } from 'node:fs';

const text = Buffer.alloc(64);
let file: number | undefined;

/**
 * Time that this thread has been on a processor, or undefined where the system does not say. On a busy machine
 * a thread waits for its turn, and an action is not to be blamed for that. Node has it from version 23.9 only;
 * before, Linux' file says it: nanoseconds, then other figures.
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

/** By what the system knows this thread; 0 where it does not say. */
function threadNumber(): number {
  try {
    return Number(readlinkSync('/proc/thread-self').split('/').at(-1));
  } catch {
    return 0;
  }
}

/** The same of any thread of this process, which costs more. */
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

/** What a thread tells of a run to the pool's watch, which looks from outside: it is memory that both have. */
export type RunHeartbeat = Int32Array;

const heard = 0;
const thread = 1;
/** Of this thread. */
const own = threadNumber();

export function newHeartbeat(): RunHeartbeat {
  return new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
}

/** By the thread, when the run comes to it; before, the run waits, which may take a while and is not its own doing. */
export function begin(progress: RunHeartbeat): void {
  Atomics.store(progress, thread, own);
  Atomics.add(progress, heard, 2);
}

/** Each time that the engine begins to run and ends: it is odd while it runs. */
export function change(progress: RunHeartbeat): void {
  Atomics.add(progress, heard, 1);
}

/** Another number, that says the same. */
export function sign(progress: RunHeartbeat): void {
  Atomics.add(progress, heard, 2);
}

/** Another number each time that the run is heard of, odd while the engine runs; 0 before it has begun. */
export function lastSign(progress: RunHeartbeat): number {
  return Atomics.load(progress, heard);
}

/** Time that the run's thread has been on a processor, or undefined where the system does not say. */
export function threadMillisecondsOf(progress: RunHeartbeat): number | undefined {
  return millisecondsOfThread(Atomics.load(progress, thread));
}
