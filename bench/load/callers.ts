import { fork } from 'node:child_process';
import type { Figures } from '../result.ts';
import type { Fleetpost } from '../servers/fleetpost.ts';
import { residentBytes } from '../servers/resident-memory.ts';
import { cpuFigures, serverTimes } from '../servers/server-times.ts';

const file = new URL('callers-process.ts', import.meta.url).pathname;

/** Names what a device does between two calls: leave, wait for mail on its connection, or hold an event stream. */
export type Manner = 'reconnects' | 'waits' | 'streams';

export interface CallersOptions {
  url: string;
  certFile: string;
  manner: Manner;
  /** Prebuilt requests of each; `SECONDS` stands in that which waits. */
  devices: readonly { sync: string; wait: string; events: string }[];
  intervalSeconds: number;
  /** Length of the measurement, after an interval that does not count. */
  seconds: number;
}

/** Words of the process that calls. */
export type CallersWord =
  | { type: 'steady' | 'end'; calls: number; bytes: number }
  | { type: 'failed'; reason: string };

/**
 * Has devices call once in each interval: figures of a call, and the memory that the server holds for each device while
 * none of them calls. @throws Error when one is not answered as it should be.
 */
export async function call(
  server: Fleetpost,
  options: Omit<CallersOptions, 'url' | 'certFile'>,
): Promise<Figures> {
  const { url, certFile } = server;
  const bytesBefore = await residentBytes(server);
  const child = fork(file);
  try {
    const said = (): Promise<Exclude<CallersWord, { type: 'failed' }>> =>
      new Promise((resolve, reject) => {
        child.once('message', (word: CallersWord) => {
          if (word.type === 'failed') reject(new Error(word.reason));
          else resolve(word);
        });
        child.once('exit', () => reject(new Error('the process that calls has ended')));
      });
    child.send({ url, certFile, ...options } satisfies CallersOptions);
    const steady = await said();
    const timesBefore = serverTimes(server);
    const end = await said();
    const calls = end.calls - steady.calls;
    return {
      ...cpuFigures(timesBefore, serverTimes(server), calls),
      wireBytesPerOperation: (end.bytes - steady.bytes) / calls,
      memoryBytesPerDevice: ((await residentBytes(server)) - bytesBefore) / options.devices.length,
    };
  } finally {
    child.kill('SIGKILL');
  }
}
