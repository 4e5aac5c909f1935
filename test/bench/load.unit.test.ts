/** Load that benchmarks put on nodes, in `bench/load`. */

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { onEveryNode } from '../../bench/load/every-node.ts';
import { closedLoopByNode } from '../../bench/load/open-loop.ts';
import { requestText, writeRequests } from '../../bench/load/requests.ts';
import type { RunningServer } from '../../bench/servers/subject.ts';
import { makeCertificate } from '../harness/server/certificate.ts';

const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
const certFile = join(folder, 'cert.pem');
const { cert, key } = await makeCertificate('load', '127.0.0.1');
writeFileSync(certFile, cert);
const device = { fleetId: 'FLEET001', deviceId: 'DEVICE0001', secret: `FOS-${'x'.repeat(32)}` };
const requests = writeRequests([requestText(device, { method: 'POST', path: '/' })]);
const load = { requests, requestsCount: 1_000, connections: 8, seconds: 60, warmUpSeconds: 0 };

const ends: (() => void)[] = [];
afterAll(() => {
  for (const end of ends) end();
  rmSync(folder, { recursive: true });
});

/** A server that counts its answers; the status is of the answer with that number. */
async function start(statusOf: (number: number) => number = () => 201): Promise<RunningServer> {
  const counts = new Map<number, number>();
  let answers = 0;
  const server = createServer({ cert, key }, (request, response) => {
    request.resume();
    answers += 1;
    const status = statusOf(answers);
    counts.set(status, (counts.get(status) ?? 0) + 1);
    response.writeHead(status, { 'content-length': '0' }).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
  };
  ends.push(stop);
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    certFile,
    devices: [device],
    processIds: () => [process.pid],
    answersByStatus: async () => new Map(counts),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

it('a load reaches every node, and ends with the last request', async () => {
  const nodes = [await start(), await start()];
  const [first] = nodes as [RunningServer];
  const server = { ...first, nodes };
  const figures = await onEveryNode(server, () => closedLoopByNode(server, { ...load, statuses: [201] }));
  const answered = await Promise.all(nodes.map(async (node) => (await node.answersByStatus?.())?.get(201)));
  expect(answered.reduce((sum = 0, count = 0) => sum + count, 0)).toBe(1_000);
  expect(figures.p99Milliseconds).toBeGreaterThan(0);
});

it('a node that a load does not reach ends the benchmark', async () => {
  const nodes = [await start(), await start()];
  const [first] = nodes as [RunningServer];
  const measured = onEveryNode({ ...first, nodes }, () =>
    closedLoopByNode(first, { ...load, statuses: [201] }),
  );
  await expect(measured).rejects.toThrow('the nodes answered 1000 and 0 requests');
});

it('one answer that was not asked for ends the benchmark', async () => {
  const server = await start((number) => (number === 700 ? 503 : 201));
  const measured = closedLoopByNode(server, { ...load, statuses: [201] });
  await expect(measured).rejects.toThrow('1 × status');
});
