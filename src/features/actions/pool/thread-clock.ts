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
export function threadNumber(): number {
  try {
    return Number(readlinkSync('/proc/thread-self').split('/').at(-1));
  } catch {
    return 0;
  }
}

/** The same of any thread of this process, which costs more. */
export function millisecondsOfThread(number: number): number | undefined {
  try {
    return millisecondsIn(readFileSync(`/proc/self/task/${number}/schedstat`, 'latin1'));
  } catch {
    return undefined;
  }
}

function millisecondsIn(schedstat: string): number {
  return Number.parseInt(schedstat, 10) / 1e6;
}
