/** Nodes whose database is away for a while. */

import { Client } from 'pg';
import { uuidv7 } from 'uuidv7';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { anyObject, createFleet, type DeviceAnswer, type TestDevice } from '../harness/devices/device.ts';
import { Broadcasts, importDevices } from '../harness/features/broadcast.ts';
import { Postgres } from '../harness/postgres/postgres.ts';
import { fleetpost } from '../harness/server/command.ts';
import { numbers, relay } from '../harness/server/nodes.ts';
import { readiness } from '../harness/server/readiness.ts';
import { TestServer } from '../harness/server/server.ts';

const clients = 8;
const patience = { timeout: 60_000, interval: 50 };

/** One server, and two nodes on it. `npm run storm:postgres` does worse to more of them. */
let postgres: Postgres;
let url: string;
let nodes: [TestServer, TestServer];
beforeAll(async () => {
  postgres = await Postgres.start();
  url = await postgres.create();
  const store = { engine: 'postgres' as const, shards: [url] };
  const { status, stderr } = await fleetpost(['migrate'], { FLEETPOST_STORE: JSON.stringify(store) });
  expect(status, stderr).toBe(0);
  const config = { store, databaseTimeoutMilliseconds: 2_000, broadcastMailsPerSecondMax: 20 };
  nodes = await Promise.all([TestServer.start(config), TestServer.start(config)]);
});
afterAll(async () => {
  for (const node of nodes ?? []) await node[Symbol.asyncDispose]();
  await postgres?.[Symbol.asyncDispose]();
});

interface Sent {
  answer: DeviceAnswer;
  number: number;
  key: string;
}

/** Sends over both nodes, one after another on each, until it is told to stop. Answers all that was answered. */
function load(device: TestDevice): { sent: Sent[]; stop(): Promise<void> } {
  const sent: Sent[] = [];
  let isOver = false;
  let number = 0;
  const run = async (node: TestServer): Promise<void> => {
    while (!isOver) {
      number += 1;
      const [own, key] = [number, uuidv7()];
      const headers = { 'Idempotency-Key': key };
      const answer = await device.on(node).request('POST', '/v1/datapoint/reading', { own }, headers);
      sent.push({ answer, number: own, key });
    }
  };
  const running = Array.from({ length: clients }, (_, index) => run(nodes[index % 2] as TestServer));
  return {
    sent,
    async stop() {
      isOver = true;
      await Promise.all(running);
    },
  };
}

/** Numbers of one device, as the database has them. */
async function storedNumbers({ fleetId, deviceId }: TestDevice): Promise<number[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const text = `SELECT payload FROM record WHERE device = $1`;
  const { rows } = await client.query<{ payload: Buffer }>(text, [fleetId + deviceId]);
  await client.end();
  return rows.map(({ payload }) => JSON.parse(payload.toString()).own);
}

const accepted = (sent: readonly Sent[]) => sent.filter(({ answer }) => answer.status === 201);

// First of all: a write that was refused is remembered for a minute.
it('a node whose database is away is alive but not ready, until the database is back', async () => {
  const [node] = nodes;
  const { admin_url } = node.report;
  expect(await readiness(admin_url)).toEqual([]);
  await postgres.end('SIGKILL');
  await expect.poll(() => readiness(admin_url), { timeout: 45_000, interval: 50 }).toEqual(['store_refuses']);
  expect((await fetch(`${admin_url}/healthz`)).status).toBe(200);
  expect(await node.admin('GET', '/fleets')).toMatchObject({ status: 200 });
  // Another node may have made it: who cannot look does not say that it is not there.
  expect(await node.admin('GET', '/fleets/FLEET001/devices')).toMatchObject({ status: 503 });
  await postgres.begin();
  await expect.poll(() => readiness(admin_url), { timeout: 45_000, interval: 50 }).toEqual([]);
});

it.each([
  [
    'dies and comes back',
    async () => {
      await postgres.end('SIGKILL');
      await new Promise((resolve) => setTimeout(resolve, 500));
      await postgres.begin();
    },
  ],
  [
    'stands still for longer than anybody waits',
    async () => {
      postgres.freeze();
      await new Promise((resolve) => setTimeout(resolve, 4_000));
      postgres.thaw();
    },
  ],
])(
  'a server that %s: 503 meanwhile, nothing that was answered is lost, and all goes on without a restart',
  async (_, fail) => {
    const device = await (await createFleet(nodes[0])).createDevice();
    await expect.poll(async () => (await device.on(nodes[1]).heartbeat()).status, patience).toBe(201);
    const { sent, stop } = load(device);
    await expect.poll(() => accepted(sent).length, patience).toBeGreaterThan(50);
    await fail();
    // Both nodes serve again.
    for (const node of nodes) {
      const one = device.on(node);
      await expect
        .poll(async () => (await one.request('POST', '/v1/datapoint/reading', { own: -1 })).status, patience)
        .toBe(201);
    }
    const recovered = accepted(sent).length;
    await expect.poll(() => accepted(sent).length, patience).toBeGreaterThan(recovered + 50);
    await stop();

    expect(new Set(sent.map(({ answer }) => answer.status))).toEqual(new Set([201, 503]));
    for (const { answer } of sent) {
      if (answer.status === 503) expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    }
    // A refused client does not know, asks again with the same key, and finds what was done all the same.
    for (const { number: own, key } of sent.filter(({ answer }) => answer.status === 503)) {
      const node = nodes[own % 2] as TestServer;
      const answer = await device
        .on(node)
        .request('POST', '/v1/datapoint/reading', { own }, { 'Idempotency-Key': key });
      expect(answer.status).toBe(201);
    }
    const stored = (await storedNumbers(device)).filter((own) => own > 0).sort((a, b) => a - b);
    for (const node of nodes) expect(node.isRunning).toBe(true);
    expect(stored).toEqual(sent.map(({ number }) => number).sort((a, b) => a - b));
  },
  60_000,
);

it('a request has one deadline: connection, credentials and write are not waited for one after another', async () => {
  const store = { engine: 'postgres' as const, shards: [url] };
  await using node = await TestServer.start({ store, databaseTimeoutMilliseconds: 5_000 });
  const device = await (await createFleet(node)).createDevice();
  await expect.poll(async () => (await device.heartbeat()).status, patience).toBe(201);
  postgres.freeze();
  try {
    const startMs = performance.now();
    const answers = Array.from({ length: 20 }, async (_, own) => {
      const { status } = await device.request('POST', '/v1/datapoint/reading', { own });
      return { status, seconds: (performance.now() - startMs) / 1_000 };
    });
    for (const { status, seconds } of await Promise.all(answers)) {
      expect(status).toBe(503);
      // Twice as much, where each has its own.
      expect(seconds).toBeLessThan(8);
    }
  } finally {
    postgres.thaw();
  }
});

it('actions and broadcasts go on when the database is back, and an outage is a warning', async () => {
  const fleet = await createFleet(nodes[0]);
  await fleet.putSchema('message', 'opened', anyObject);
  await importDevices(fleet, { count: 60 });
  const [door, lock] = [await fleet.createDevice(), await fleet.createDevice()];
  await fleet.putAction('relay', relay);
  const open = async (n: number) =>
    (await door.request('POST', '/v1/msg/opened', { n, to: lock.deviceId })).status;
  await expect.poll(() => open(0), patience).toBe(201);
  await expect.poll(() => numbers(lock), patience).toContain(0);
  const broadcasts = new Broadcasts(fleet);
  const { broadcast_id } = await broadcasts.put({ name: 'note', to: { all: true } });
  const before = nodes.map(({ stderr }) => stderr.length);
  await postgres.end('SIGKILL');
  const haveNoticed = () => nodes.every(({ stderr }, index) => stderr.includes('"level":40', before[index]));
  await expect.poll(haveNoticed, patience).toBe(true);
  await postgres.begin();
  await expect.poll(() => open(1), patience).toBe(201);
  await expect.poll(() => numbers(lock), patience).toContain(1);
  await broadcasts.done(broadcast_id);
  for (const { stderr } of nodes) {
    expect(stderr).toContain('"level":40');
    expect(stderr.split('\n').filter((line) => /"level":[56]0/.test(line))).toEqual([]);
  }
});
