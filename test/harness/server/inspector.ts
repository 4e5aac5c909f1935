import { InspectorSession } from './inspector-session.ts';
import type { TestServer } from './server.ts';
import { until } from './vitals.ts';

/** Options of a start for a server that `evaluate` can ask: nothing opens an inspector later. */
export const inspected = { environment: { NODE_OPTIONS: '--inspect=0' } };

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
  using session = await InspectorSession.open(address.exec(server.stderr)?.[1] ?? '');
  // After the inspector has its answer, for it to leave: a process waits with its end for that.
  const code = { expression: `setTimeout(() => { ${expression} }, 200)` };
  if (worker === 'main') {
    await session.ask('Runtime.evaluate', code);
    return;
  }
  await session.ask('NodeWorker.enable', { waitForDebuggerOnStart: false });
  // Acceptor and workers are threads of the main thread alike, and told of in any order.
  const workers = () =>
    session.workers.filter(({ workerInfo }) => workerInfo.url.endsWith('/threads/worker.js'));
  await until(() => workers().length === server.report.shards);
  const inOrder = workers().sort(
    (one, other) => Number(one.workerInfo.workerId) - Number(other.workerInfo.workerId),
  );
  await session.ask('Runtime.evaluate', code, inOrder[worker]);
}
