/** A data folder on a full disk. */

import { join } from 'node:path';
import { expect, it } from 'vitest';
import { deviceKeyOf } from '../../../src/core/identity.ts';
import { shardOf } from '../../../src/domain/placement.ts';
import { verifyFolder } from '../../../src/maintenance/verify.ts';
import { createFleet, type DeviceAnswer, type TestDevice } from '../../harness/devices/device.ts';
import { SmallDisk } from '../../harness/machine/small-disk.ts';
import { fleetpost } from '../../harness/server/command.ts';
import { readiness } from '../../harness/server/readiness.ts';
import { ownCertificate, shards, TestServer } from '../../harness/server/server.ts';
import { until } from '../../harness/server/vitals.ts';
import { readRecords } from '../../harness/storage/log.ts';

const quiet = { start: () => {}, onRecord: () => {} };

function shardOfDevice({ fleetId, deviceId }: TestDevice): number {
  return shardOf(deviceKeyOf(fleetId, deviceId), shards);
}

/** Two devices of each shard. */
async function devicesOfAllShards(server: TestServer): Promise<TestDevice[]> {
  const fleet = await createFleet(server);
  const all = await Promise.all(Array.from({ length: 12 * shards }, () => fleet.createDevice()));
  return Array.from({ length: shards }, (_, shard) =>
    all.filter((device) => shardOfDevice(device) === shard).slice(0, 2),
  ).flat();
}

function expectUnavailable(answer: DeviceAnswer): void {
  expect(answer).toMatchObject({ status: 503, json: { error: 'unavailable' } });
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
}

/** Sends a record, and adds it to `stored` if it is answered 201. */
async function send(device: TestDevice, n: number, stored: Set<string>): Promise<DeviceAnswer> {
  const payload = JSON.stringify({ n, device: device.deviceId, filling: 'x'.repeat(3_000) });
  const answer = await device.request('POST', '/v1/datapoint/reading', payload);
  if (answer.status === 201) stored.add(payload);
  return answer;
}

async function expectAllStored(server: TestServer, stored: Set<string>): Promise<void> {
  expect([await server.stop(), server.process.signalCode, server.stderr]).toMatchObject([
    0,
    null,
    expect.any(String),
  ]);
  const found = (await readRecords(server.report)).map(({ payload }) => payload);
  expect(new Set(found)).toEqual(stored);
  expect(found).toHaveLength(stored.size);
  expect((await verifyFolder(server.report.data, quiet)).findings.sentences).toEqual([]);
}

it('mail stops before what devices send: it leaves them three quarters of the room', async () => {
  using disk = new SmallDisk(96);
  const config = { diskFreeBytesMin: 8 * 1024 * 1024, mailboxMailsMax: 5_000 };
  await using server = await TestServer.start(config, join(disk.path, 'data'));
  const [device] = await devicesOfAllShards(server);
  if (device === undefined) throw new Error('no device');
  const mail = { text: 'x'.repeat(60_000) };
  const put = async (): Promise<number> =>
    (await server.admin('POST', `${device.adminPath}/mail/note`, mail)).status;
  let status = 201;
  while (status === 201) status = await put();
  expect(status).toBe(503);
  const stored = new Set<string>();
  for (let n = 0; n < 20; n += 1) expect((await send(device, n, stored)).status).toBe(201);
  expect(await put()).toBe(503);
  await expectAllStored(server, stored);
});

it('on a full disk writes are 503, reads go on, and room that is made is used without a restart', async () => {
  using disk = new SmallDisk(64);
  await using server = await TestServer.start({ diskFreeBytesMin: 8 * 1024 * 1024 }, join(disk.path, 'data'));
  const devices = await devicesOfAllShards(server);
  for (const device of devices) await device.sendMail('note', '{"kept":true}');
  disk.fill();

  const stored = new Set<string>();
  const refused = new Set<TestDevice>();
  let n = 0;
  while (refused.size < devices.length) {
    const answers = await Promise.all(devices.map((device) => send(device, n++, stored)));
    for (const [index, answer] of answers.entries()) {
      if (answer.status === 201) continue;
      expectUnavailable(answer);
      refused.add(devices[index] as TestDevice);
    }
  }
  // Of a write that met the end of the disk before a look at it did, the store says so too for a while.
  expect(await readiness(server.report.admin_url)).toContain('disk_full');
  for (const device of devices) {
    expect((await device.heartbeat()).status).toBe(201);
    expect(await device.next()).toMatchObject({ status: 200, text: '{"kept":true}' });
  }
  const fleets = await Promise.all(Array.from({ length: 30 }, () => server.admin('POST', '/fleets', {})));
  expect(fleets.filter(({ status }) => status !== 201 && status !== 503)).toEqual([]);

  disk.makeRoom();
  for (const device of devices) {
    await until(async () => (await send(device, n++, stored)).status === 201);
    const mailId = String((await device.next()).headers.get('x-mail-id'));
    expect((await device.settle('ack', mailId)).status).toBe(200);
  }
  await until(async () => (await server.admin('POST', '/fleets', {})).status === 201);
  expect(await readiness(server.report.admin_url)).toEqual([]);
  await expectAllStored(server, stored);
});

it('a server starts on a full disk, also at another admin port than last time, and answers reads', async () => {
  using disk = new SmallDisk(64);
  const data = join(disk.path, 'data');
  const config = { diskFreeBytesMin: 8 * 1024 * 1024, ...ownCertificate };
  const before = await TestServer.start(config, data);
  const device = await (await createFleet(before)).createDevice();
  await device.sendMail('note', '{"kept":true}');
  await before.stop();
  disk.fill();
  for (let start = 0; start < 2; start += 1) {
    // Any port, and so another one each time.
    await using server = await TestServer.start(config, data);
    expect(server.token).toBe(before.token);
    const same = device.on(server);
    expect((await same.heartbeat()).status).toBe(201);
    expect(await same.next()).toMatchObject({ status: 200, text: '{"kept":true}' });
    expectUnavailable(await same.request('POST', '/v1/datapoint/reading', { a: 1 }));
    const listed = await fleetpost(['fleet', 'list', '--data', data, '--json']);
    expect(listed).toMatchObject({ status: 0, stdout: expect.stringContaining(device.fleetId) });
    expect(await server.stop()).toBe(0);
  }
});

it('a full map refuses what adds records, and takes them again when mail that is settled makes room', async () => {
  await using server = await TestServer.start({ mapBytesMax: 16 * 1024 * 1024 });
  const [elsewhere, ...all] = (await devicesOfAllShards(server)).reverse() as [TestDevice, ...TestDevice[]];
  // One shard is filled; the others do not notice.
  const devices = all.filter((device) => shardOfDevice(device) === 0);
  const payload = JSON.stringify({ filling: 'x'.repeat(60_000) });
  const full = new Set<TestDevice>();
  while (full.size < devices.length) {
    const rest = devices.filter((device) => !full.has(device));
    const answers = await Promise.all(rest.map((device) => device.sendMail('note', payload)));
    for (const [index, answer] of answers.entries()) {
      if (answer.status === 201) continue;
      expect(answer).toMatchObject({ status: 503, body: { error: 'unavailable' } });
      full.add(rest[index] as TestDevice);
    }
  }

  expect(await readiness(server.report.admin_url)).toEqual(['shard_full']);
  const stored = new Set<string>();
  let n = 0;
  for (const device of devices) {
    while ((await send(device, n++, stored)).status !== 503);
    expectUnavailable(await send(device, n++, stored));
    expect((await device.heartbeat()).status).toBe(201);
    const head = await device.next();
    expect(head).toMatchObject({ status: 200, text: payload });
    const mailId = String(head.headers.get('x-mail-id'));
    // The first device's mail makes room for the others.
    if (device === devices[0]) while ((await device.settle('requeue', mailId)).status !== 503);
    expect((await device.settle('ack', mailId)).status).toBe(200);
  }
  for (const device of devices) await until(async () => (await send(device, n++, stored)).status === 201);
  expect(await readiness(server.report.admin_url)).toEqual([]);
  if (shards > 1) expect((await send(elsewhere, n++, stored)).status).toBe(201);
  await expectAllStored(server, stored);
});
