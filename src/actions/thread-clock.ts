import { openSync, readSync } from 'node:fs';

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
    return Number.parseInt(text.toString('latin1', 0, length), 10) / 1e6;
  } catch {
    return undefined;
  }
}
