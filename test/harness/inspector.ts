import { once } from 'node:events';
import { WebSocket } from 'undici';
import type { TestServer } from './server.ts';
import { until } from './vitals.ts';

/** Options of a start for a server that `evaluate` can ask: nothing opens an inspector later. */
export const inspected = { environment: { NODE_OPTIONS: '--inspect=0' } };

/** What the inspector says of a thread that it can reach. */
interface Attached {
  sessionId: string;
  workerInfo: { workerId: string; url: string };
}

/**
 * Has a thread of a server run code, through Node's inspector: the worker of that number as they were started,
 * or the main thread.
 */
export async function evaluate(
  server: TestServer,
  worker: number | 'main',
  expression: string,
): Promise<void> {
  const address = /Debugger listening on (ws:\S+)/;
  await until(() => address.test(server.stderr));
  const socket = new WebSocket(address.exec(server.stderr)?.[1] ?? '');
  await once(socket, 'open');
  const attached: Attached[] = [];
  socket.addEventListener('message', ({ data }) => {
    const { method, params } = JSON.parse(String(data)) as { method?: string; params?: Attached };
    // Acceptor and workers are threads of the main thread alike, and told of in any order.
    if (method === 'NodeWorker.attachedToWorker' && params?.workerInfo.url.endsWith('/threads/worker.js')) {
      attached.push(params);
    }
  });
  // After the inspector has its answer, for it to leave: a process waits with its end for that.
  const later = `setTimeout(() => { ${expression} }, 200)`;
  const code = { id: 2, method: 'Runtime.evaluate', params: { expression: later } };
  const answered = new Promise<void>((resolve) => {
    socket.addEventListener('message', ({ data }) => {
      if (/\\?"id\\?":2/.test(String(data))) resolve();
    });
  });
  if (worker === 'main') socket.send(JSON.stringify(code));
  else {
    const params = { waitForDebuggerOnStart: false };
    socket.send(JSON.stringify({ id: 1, method: 'NodeWorker.enable', params }));
    await until(() => attached.length === server.report.shards);
    attached.sort((one, other) => Number(one.workerInfo.workerId) - Number(other.workerInfo.workerId));
    const wrapped = { sessionId: attached[worker]?.sessionId, message: JSON.stringify(code) };
    socket.send(JSON.stringify({ id: 3, method: 'NodeWorker.sendMessageToWorker', params: wrapped }));
  }
  await answered;
  socket.close();
}
