/** A held server across kills, and its release. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { anyObject, createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { auditEntries } from '../harness/features/audit.ts';
import { Broadcasts, mailboxSizes } from '../harness/features/broadcast.ts';
import { Receiver } from '../harness/features/receiver.ts';
import { fleetpost, fleetpostJson } from '../harness/server/command.ts';
import { engine, TestServer, temporaryFolder } from '../harness/server/server.ts';
import { metric } from '../harness/server/vitals.ts';

const patience = { timeout: 60_000, interval: 50 };
const config = {
  broadcastMailsPerSecondMax: 20,
  forwardHosts: 'localhost',
  forwardRetryMilliseconds: 20,
  forwardRetrySecondsMax: 1,
};
const devicesCount = 60;
/** Longer than any actor needs to begin, and than the delayed mail is delayed. */
const heldMs = 2_500;

const relayTo = (device: string) => `export default (_, fleet) => fleet.send('${device}', 'relayed', {})`;

interface Scene {
  fleet: TestFleet;
  devices: TestDevice[];
  receiver: Receiver;
  broadcastId: string;
}

/** One of everything that acts by itself, each with something left to do. */
async function prepare(server: TestServer): Promise<Scene> {
  const fleet = await createFleet(server);
  await fleet.putSchema('message', 'opened', anyObject);
  const devices = await Promise.all(Array.from({ length: devicesCount }, () => fleet.createDevice()));
  const [door, lock] = devices as [TestDevice, TestDevice];
  const receiver = await Receiver.start();
  receiver.react = () => ({ status: 503 });
  const hook = {
    type: 'webhook',
    url: receiver.url,
    tls: { ca: receiver.ca },
    filter: { kinds: ['datapoint'] },
  };
  const { body } = await server.admin('PUT', `/fleets/${fleet.fleetId}/forwarders/hook`, hook);
  receiver.secret = String(body.secret);
  expect((await fleet.putAction('relay', relayTo(lock.deviceId))).status).toBe(201);
  for (const n of [1, 2]) await door.request('POST', '/v1/datapoint/reading', { n });
  const { broadcast_id } = await new Broadcasts(fleet).put({ name: 'all', payload: {}, to: { all: true } });
  const deliverAt = new Date(Date.now() + 2_000).toISOString();
  expect((await lock.sendMail('later', '{}', `?deliver_at=${deliverAt}`)).status).toBe(201);
  return { fleet, devices, receiver, broadcastId: broadcast_id };
}

/** Held by `restore --quiet`, or by `serve --paused` where the data is in a database. */
async function startHeld(server: TestServer, data: string): Promise<TestServer> {
  if (engine === 'postgres') {
    await server.kill();
    return TestServer.start(config, server.report.data, { flags: ['--paused'] });
  }
  const backup = join(data, 'backup');
  await fleetpostJson(server, ['backup', backup]);
  await server.kill();
  const restored = join(data, 'restored');
  const { status, stdout } = await fleetpost(['restore', backup, '--data', restored, '--quiet', '--json']);
  expect({ status, ...JSON.parse(stdout) }).toMatchObject({ status: 0, held: true });
  expect(await fleetpost(['verify', '--data', restored])).toMatchObject({ status: 0 });
  return TestServer.start(config, restored);
}

async function expectHeld(
  server: TestServer,
  { fleet, receiver, devices, broadcastId }: Scene,
): Promise<void> {
  const [, lock] = devices as [TestDevice, TestDevice];
  const at = `/fleets/${fleet.fleetId}`;
  expect(server.report).toMatchObject({ held: true });
  expect(server.stderr).toContain('server held');
  const before = await mailboxSizes(fleet);
  await wait(heldMs);
  expect(receiver.batches).toEqual([]);
  expect(await mailboxSizes(fleet)).toEqual(before);
  expect((await lock.on(server).mails()).map(({ name }) => name)).not.toContain('relayed');
  expect((await server.admin('GET', `${at}/actions/relay`)).body).toMatchObject({ held: 'server_held' });
  expect((await server.admin('GET', `${at}/actions/relay/runs`)).body).toMatchObject({ items: [] });
  expect((await server.admin('GET', `${at}/forwarders/hook`)).body).toMatchObject({ state: 'held' });
  expect(await new Broadcasts(fleet).get(broadcastId)).toMatchObject({ state: 'held' });
  expect((await server.admin('GET', '/hold')).body).toEqual({ held: true, since: expect.any(String) });
  expect((await server.admin('GET', '/top')).body).toMatchObject({ held: true, reasons: [] });
  expect(await metric(server, 'fleetpost_held')).toEqual([1]);
  const replay = await server.admin('POST', `${at}/actions/relay/dead-letters/replay`, {});
  expect(replay).toMatchObject({ status: 409, body: { error: 'server_held' } });
}

async function expectAllDone(
  server: TestServer,
  { fleet, devices, receiver, broadcastId }: Scene,
): Promise<void> {
  const [, lock] = devices as [TestDevice, TestDevice];
  await expect.poll(() => receiver.taken.map(({ payload }) => payload.n), patience).toHaveLength(4);
  await new Broadcasts(fleet).done(broadcastId);
  const names = async (): Promise<string[]> => (await lock.on(server).mails()).map(({ name }) => name).sort();
  await expect.poll(names, patience).toEqual(['all', 'later', 'relayed']);
  expect(receiver.taken.map(({ payload }) => payload.n)).toEqual([1, 2, 3, 4]);
  const sizes = [...(await mailboxSizes(fleet)).values()].sort();
  expect(sizes).toEqual([...Array(devicesCount - 1).fill(1), 3]);
}

it('what acts by itself waits for the release of a held server, through kills, and then does everything once and in order', async () => {
  const data = temporaryFolder();
  // So slowly that a broadcast is not done before its server is held, however busy the machine is.
  let server = await TestServer.start({ ...config, broadcastMailsPerSecondMax: 1 });
  const first = server;
  const scene = await prepare(server);
  const { fleet, devices, receiver } = scene;
  const restart = async (): Promise<void> => {
    await server.kill();
    server = await TestServer.start(config, server.report.data);
    fleet.server = server;
  };
  try {
    server = await startHeld(server, data);
    fleet.server = server;
    receiver.batches.length = 0;
    receiver.react = () => ({ status: 204 });

    // Devices are served as ever, and mail that is due already reaches them.
    const [door, , other] = devices.map((device) => device.on(server)) as [
      TestDevice,
      TestDevice,
      TestDevice,
    ];
    expect((await door.heartbeat()).status).toBe(201);
    for (const n of [3, 4]) await door.request('POST', '/v1/datapoint/reading', { n });
    expect((await door.request('POST', '/v1/msg/opened', { n: 1 })).status).toBe(201);
    const { mailId } = await other.sendMail('now');
    expect((await other.settle('ack', mailId)).status).toBe(200);
    await expectHeld(server, scene);
    await restart();
    await expectHeld(server, scene);

    const reader = await server.admin<{ token: string }>('POST', '/tokens', {
      name: 'reader',
      scopes: ['read'],
    });
    const asReader = await fleetpost(['release', '--data', server.report.data, '--token', reader.body.token]);
    expect(asReader.stderr).toContain('lacks the scope admin');
    expect(await fleetpostJson(server, ['release'])).toEqual({ released: true });
    expect(await fleetpostJson(server, ['release'])).toEqual({ released: false });
    const released = (await auditEntries(server)).filter(
      ({ method, route, status }) => method === 'DELETE' && route === '/admin/v1/hold' && status === 200,
    );
    expect(released.map(({ about }) => about)).toEqual([{ released: 'false' }, { released: 'true' }]);
    await expectAllDone(server, scene);

    await restart();
    expect(server.report).toMatchObject({ held: false });
    expect(await metric(server, 'fleetpost_held')).toEqual([0]);
    await wait(500);
    await expectAllDone(server, scene);
  } finally {
    await server[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();
    await receiver[Symbol.asyncDispose]();
    rmSync(data, { recursive: true, force: true });
  }
});
