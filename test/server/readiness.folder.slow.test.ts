import { once } from 'node:events';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { fetch } from 'undici';
import { afterAll, expect, it } from 'vitest';
import { deviceKeyOf } from '../../src/core/identity.ts';
import { freePort } from '../../src/device/simulator/run/free-port.ts';
import { shardOf } from '../../src/domain/placement.ts';
import { createFleet, type TestDevice } from '../harness/devices/device.ts';
import { evaluate, inspected } from '../harness/server/inspector.ts';
import { readiness, watchReadiness } from '../harness/server/readiness.ts';
import { shards, TestServer, temporaryFolder } from '../harness/server/server.ts';

const data = temporaryFolder();
afterAll(() => rmSync(data, { recursive: true, force: true }));

it('is alive but not ready while it moves to another shard count, and while it drains devices are served', async () => {
  const first = await TestServer.start({}, data);
  const devices: TestDevice[] = [];
  const fleet = await createFleet(first);
  for (let count = 0; count < 20; count += 1) devices.push(await fleet.createDevice());
  expect(await readiness(first.report.admin_url)).toEqual([]);
  await first.stop();

  const port = await freePort();
  const adminUrl = `http://127.0.0.1:${port}`;
  let isUp = false;
  const starting = watchReadiness(adminUrl, () => isUp);
  const second = await TestServer.start(
    { admin: `127.0.0.1:${port}`, shards: shards + 2, drainSeconds: 60 },
    data,
  );
  isUp = true;
  const said = await starting;
  // It starts before it knows that it has to move, which may take no time at all, and behind it.
  expect(said.slice(said.indexOf('moving')).filter((one) => one !== 'ready')).toEqual(['moving', 'starting']);
  expect(await readiness(adminUrl)).toEqual([]);

  let isDown = false;
  const stop = second.stop().finally(() => {
    isDown = true;
  });
  const stopping = watchReadiness(adminUrl, () => isDown);
  await expect.poll(() => readiness(adminUrl)).toEqual(['stopping']);
  // The agent of the server is gone by now; this is a client that has not heard of it yet.
  const agent = TestServer.agentFor(second.ca);
  const device = devices[0] as TestDevice;
  const { status } = await fetch(`${second.url}/v1/heartbeat`, {
    method: 'POST',
    headers: { ...device.credentials },
    dispatcher: agent,
  });
  expect(status).toBe(201);
  expect((await fetch(`${adminUrl}/healthz`)).status).toBe(200);
  await agent.destroy();
  // A second signal ends the wait.
  second.process.kill('SIGTERM');
  expect(await stop).toBe(0);
  expect((await stopping).filter((one) => one !== 'nothing' && one !== 'ready')).toEqual(['stopping']);
});

it('an admin address that is taken ends a start before anything is moved', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const admin = `127.0.0.1:${(holder.address() as AddressInfo).port}`;
  await expect(TestServer.start({ admin, shards: shards + 5 }, data)).rejects.toThrow(
    /Cannot listen on .* for the admin API/,
  );
  holder.close();
  await using again = await TestServer.start({ shards: shards + 2 }, data);
  expect(again.report.shards).toBe(shards + 2);
});

it('a queue that has been full for 10 s is a reason, until it is not', async () => {
  const queueMax = 4;
  await using server = await TestServer.start(
    { shardQueueMax: queueMax, stallEndSeconds: 60 },
    undefined,
    inspected,
  );
  const fleet = await createFleet(server);
  const devices = new Map<number, TestDevice>();
  while (devices.size < shards) {
    const device = await fleet.createDevice();
    devices.set(shardOf(deviceKeyOf(device.fleetId, device.deviceId), shards), device);
  }
  // The writer of one shard stands still; whatever comes over other workers waits for it.
  const [shut, gate] = [join(server.report.data, 'shut'), join(server.report.data, 'gate')];
  const sleep = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)';
  await evaluate(
    server,
    0,
    `const fs = process.getBuiltinModule('fs');
    fs.writeFileSync('${shut}', '');
    while (!fs.existsSync('${gate}')) ${sleep};`,
  );
  // Requests that come before that are answered, and wait in no queue.
  await expect.poll(() => existsSync(shut)).toBe(true);
  const agents = Array.from({ length: 3 * queueMax }, () => TestServer.agentFor(server.ca));
  const sent = [...devices.values()].flatMap((device) =>
    agents.map((agent) => device.request('POST', '/v1/datapoint/reading', { a: 1 }, {}, agent)),
  );
  const answers = Promise.allSettled(sent);
  const { admin_url } = server.report;
  await expect.poll(() => readiness(admin_url)).toEqual(['queue_full']);
  writeFileSync(gate, '');
  await expect.poll(() => readiness(admin_url)).toEqual([]);
  // Those that are dealt to it may have given up before they were connected.
  const statuses = (await answers).map((one) => (one.status === 'fulfilled' ? one.value.status : 'none'));
  expect(statuses).toContain(201);
  expect(statuses).toContain(503);
  await Promise.all(agents.map((agent) => agent.destroy()));
});
