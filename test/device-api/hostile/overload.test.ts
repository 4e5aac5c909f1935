/** Hostile trial: more load than the server takes. */

import { Agent } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { RawConnection } from '../../harness/devices/raw.ts';
import { shards, TestServer } from '../../harness/server/server.ts';
import { datapoint, expectAlive, metric, ownMebibytes, until } from '../../harness/server/vitals.ts';

const queueMax = 8;
const growthMebibytesMax = 96;
const loadMs = 2_000;
/** Latency of an accepted request on a slow machine that also makes the load; more on one that does other things, too. */
const latencyMsMax = 5_000;
const timesCalmMax = 16;

let server: TestServer;
let devices: TestDevice[];

beforeAll(async () => {
  server = await TestServer.start({
    shardQueueMax: queueMax,
    deviceRequestsPerSecondMax: 0,
  });
  const fleet = await createFleet(server);
  // One after another: the queue is short.
  devices = [];
  for (let i = 0; i < 16; i += 1) devices.push(await fleet.createDevice());
});

afterAll(() => server[Symbol.asyncDispose]());

interface Outcomes {
  stored: number;
  slowestMs: number;
}

/** Each of many clients, on a connection of its own, sends its next datapoint as soon as the last is answered. */
async function load(clients: number): Promise<Outcomes> {
  const agent = new Agent({ connect: { ca: server.ca }, connections: clients });
  const outcomes: Outcomes = { stored: 0, slowestMs: 0 };
  const endMs = performance.now() + loadMs;
  const one = async (device: TestDevice): Promise<void> => {
    while (performance.now() < endMs) {
      const startMs = performance.now();
      const answer = await device.request('POST', '/v1/datapoint/reading', { a: 1 }, {}, agent);
      if (answer.status === 201) {
        outcomes.stored += 1;
        outcomes.slowestMs = Math.max(outcomes.slowestMs, performance.now() - startMs);
      } else {
        expect([answer.status, answer.json.error]).toEqual([503, 'unavailable']);
        expect(answer.json.msg).toContain('shardQueueMax');
        expect(answer.headers.get('retry-after')).toBe('1');
      }
    }
  };
  await Promise.all(
    Array.from({ length: clients }, (_, i) => one(devices[i % devices.length] as TestDevice)),
  );
  await agent.destroy();
  return outcomes;
}

/** Sends as many datapoints at the same moment as no queue here takes. Answers how many were refused. */
async function burst(): Promise<number> {
  const opened = Array.from({ length: 8 * queueMax * shards }, () => RawConnection.open(server));
  const clients = await Promise.all(opened);
  for (const [i, client] of clients.entries()) {
    client.write(datapoint(devices[i % devices.length] as TestDevice, '{"a":1}'));
  }
  const statuses: number[] = [];
  for (const client of clients) {
    statuses.push((await client.answer()).status);
    client.destroy();
  }
  expect(statuses.filter((status) => status !== 201 && status !== 503)).toEqual([]);
  return statuses.filter((status) => status === 503).length;
}

it('with more load than it takes the server refuses early, answers the rest in time, and is at once as before', async () => {
  const calm = await load(20);
  const before = ownMebibytes(server);
  const { stored, slowestMs } = await load(160);
  expect(stored).toBeGreaterThan(0);
  expect(slowestMs).toBeLessThan(Math.max(latencyMsMax, timesCalmMax * calm.slowestMs));
  expect(ownMebibytes(server) - before).toBeLessThan(growthMebibytesMax);
  // A client that makes its load on a busy machine may not get there.
  await until(async () => (await burst()) > 0);
  // No wait: the queue is empty with its last answer.
  const [device] = devices as [TestDevice];
  for (let i = 0; i < 5; i += 1) {
    expect((await device.request('POST', '/v1/datapoint/reading', { a: 1 })).status).toBe(201);
  }
  expect(Math.max(...(await metric(server, 'fleetpost_shard_queue_depth')))).toBeLessThan(queueMax);
  await expectAlive(server, device);
});
