import { millisecondsOfThread, threadNumber } from './thread-clock.ts';

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
