import { connect, type NetConnectOpts } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { ServerProcess } from './server-process.ts';

const pollMs = 20;
const timeoutMs = 20_000;

function accepts(address: NetConnectOpts): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** Settles once a server that does not say when it is ready takes connections. @throws Error when it ended. */
export async function reachable(process: ServerProcess, address: NetConnectOpts): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!(await accepts(address))) {
    // Rejects with what the process said.
    if (!process.isRunning) await process.firstLine;
    if (performance.now() > endMs) throw new Error('a server did not listen in time');
    await setTimeout(pollMs);
  }
}
