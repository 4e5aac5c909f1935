import { connect, type NetConnectOpts } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { ServerProcess } from './server-process.ts';

const pollMs = 20;
const timeoutMs = 20_000;

/** Tells whether a connection can be made. */
export function accepts(address: NetConnectOpts): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/**
 * Settles once a server is ready that does not say so itself.
 * @throws Error when it ended, or was not ready in time.
 */
export async function untilReady(process: ServerProcess, isReady: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!(await isReady())) {
    // Rejects with what the process said.
    if (!process.isRunning) await process.firstLine;
    if (performance.now() > endMs) throw new Error('a server was not ready in time');
    await setTimeout(pollMs);
  }
}
