import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { fetch } from 'undici';
import { afterAll, expect, it } from 'vitest';
import { createFleet, type TestDevice } from '../harness/device.ts';
import { readiness, watchReadiness } from '../harness/health.ts';
import { shards, TestServer, temporaryFolder } from '../harness/server.ts';

const data = temporaryFolder();
afterAll(() => rmSync(data, { recursive: true, force: true }));

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

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
  expect(said.filter((one) => one !== 'nothing' && one !== 'starting' && one !== 'ready')).toEqual([
    'moving',
  ]);
  expect(await readiness(adminUrl)).toEqual([]);

  let isDown = false;
  const stop = second.stop().finally(() => {
    isDown = true;
  });
  const stopping = watchReadiness(adminUrl, () => isDown);
  await expect.poll(() => readiness(adminUrl), { timeout: 20_000 }).toEqual(['stopping']);
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
}, 120_000);

it('an admin address that is taken ends a start before anything is moved', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const admin = `127.0.0.1:${(holder.address() as AddressInfo).port}`;
  await expect(TestServer.start({ admin, shards: shards + 5 }, data)).rejects.toThrow(
    /cannot be listened on for the admin API/,
  );
  holder.close();
  await using again = await TestServer.start({ shards: shards + 2 }, data);
  expect(again.report.shards).toBe(shards + 2);
}, 120_000);
