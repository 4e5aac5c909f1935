/** Decisions D1 to D3, section 2: ids, names and secrets. */

import { hash } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { createFleet, TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { expectError } from '../harness/devices/routes.ts';
import { TestServer } from '../harness/server/server.ts';
import { isStored } from '../harness/storage/stored.ts';

let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
});
it('D1, section 2: generated ids and secrets have their lengths, of upper-case letters and digits, no two alike', async () => {
  const devices = await Promise.all(Array.from({ length: 100 }, () => fleet.createDevice()));
  expect(fleet.fleetId).toMatch(/^[A-Z0-9]{8}$/);
  for (const { deviceId, secret } of devices) {
    expect(deviceId).toMatch(/^[A-Z0-9]{10}$/);
    expect(secret).toMatch(/^FOS-[A-Z0-9]{32}$/);
  }
  expect(new Set(devices.map(({ deviceId }) => deviceId)).size).toBe(100);
  expect(new Set(devices.map(({ secret }) => secret)).size).toBe(100);
});

it('D1: ids of letters of either case and digits are taken as they are given', async () => {
  const named = await createFleet(server, { fleet_id: 'aB3dE6gH' });
  const device = await named.createDevice({ device_id: 'zY3xW6vU9t' });
  const { json } = await device.request('GET', '/v1');
  expect(json.device).toEqual({ fleet_id: 'aB3dE6gH', device_id: 'zY3xW6vU9t' });
});

it.each(['ABCDEFG', 'ABCDEFGHI', 'ABCD-FGH', 'ABCDEFG ', 'ABCDEFGÄ', ''])(
  'D1: no fleet is made with the id "%s"',
  async (fleet_id) => {
    const { status, body } = await server.admin('POST', '/fleets', { fleet_id });
    expect(status).toBe(400);
    expect(body.error).toBe('invalid_body');
  },
);

it.each(['ABCDEFGHI', 'ABCDEFGHIJK', 'ABCDE_GHIJ', ''])(
  'D1: no device is made with the id "%s"',
  async (device_id) => {
    const { status } = await server.admin('POST', `/fleets/${fleet.fleetId}/devices`, { device_id });
    expect(status).toBe(400);
  },
);

it('D1: ids that differ in case alone are different', async () => {
  const cased = await createFleet(server, { fleet_id: 'CaseFlt1' });
  const device = await cased.createDevice({ device_id: 'CaseDevice' });
  const fleetAnswer = await device.request('GET', '/v1', undefined, { 'X-Fleet-ID': 'CASEFLT1' });
  const deviceAnswer = await device.request('GET', '/v1', undefined, { 'X-Device-ID': 'CASEDEVICE' });
  expectError(fleetAnswer, 401, 'unauthorized', { detail: 'fleet_not_found' });
  expectError(deviceAnswer, 401, 'unauthorized', { detail: 'device_not_found' });
});

it('D1, section 5.3: the secret is compared exactly, its case included', async () => {
  const device = await fleet.createDevice();
  for (const secret of [
    `FOS-${device.secret.slice(4).toLowerCase()}`,
    `FOS-${[...device.secret.slice(4)].reverse().join('')}`,
    `${device.secret.slice(0, -1)}${device.secret.endsWith('A') ? 'B' : 'A'}`,
  ]) {
    const answer = await device.request('GET', '/v1', undefined, { 'X-Device-Secret': secret });
    expectError(answer, 401, 'unauthorized', { detail: 'device_secret_incorrect' });
  }
});

it('D1: a device id is unique within its fleet', async () => {
  const device_id = 'ONLYONCE01';
  const device = await fleet.createDevice({ device_id });
  const again = await server.admin('POST', `/fleets/${fleet.fleetId}/devices`, { device_id });
  expect(again).toMatchObject({ status: 409, body: { error: 'already_exists' } });
  expect((await device.heartbeat()).status).toBe(201);
});

it('D1: the same device id in another fleet is another device, with its own secret and mailbox', async () => {
  const other = await createFleet(server);
  const device_id = 'TWICE00001';
  const [here, there] = [await fleet.createDevice({ device_id }), await other.createDevice({ device_id })];
  await here.sendMail();
  expect((await here.heartbeat()).headers.get('x-messages-available')).toBe('true');
  expect((await there.heartbeat()).headers.get('x-messages-available')).toBe('false');
  const crossed = new TestDevice(server, here.fleetId, device_id, there.secret);
  expectError(await crossed.heartbeat(), 401, 'unauthorized', { detail: 'device_secret_incorrect' });
});

it.each(['a', '0', '-_-', 'x'.repeat(255)])('D2: a schema may have the name "%s"', async (name) => {
  const device = await fleet.createDevice();
  await fleet.putSchema('datapoint', name, {});
  await fleet.putSchema('message', name, {});
  expect((await device.request('POST', `/v1/datapoint/${name}`, { a: 1 })).status).toBe(201);
  expect((await device.request('POST', `/v1/msg/${name}`, { a: 1 })).status).toBe(201);
  expect((await device.sendMail(name)).status).toBe(201);
});

const impossibleNames = ['a.b', 'a%20b', '%C3%A4', 'a~b', 'a:b', 'a+b', '*', ':schema_name', 'x'.repeat(256)];

it.each(impossibleNames)('D2: no schema can have the name "%s": 404 schema_not_found', async (name) => {
  const device = await fleet.createDevice();
  expectError(await device.request('POST', `/v1/datapoint/${name}`, { a: 1 }), 404, 'schema_not_found');
  expectError(await device.request('POST', `/v1/msg/${name}`, { a: 1 }), 404, 'schema_not_found');
  const mail = await device.sendMail(name);
  expect(mail).toMatchObject({ status: 404, body: { error: 'schema_not_found' } });
  const put = await server.admin('PUT', `/fleets/${fleet.fleetId}/schemas/message/${name}`, {});
  expect(put.status).toBe(400);
});

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer');

it('D3: of a secret only its SHA-256 digest is on disk', async () => {
  await using own = await TestServer.start({}, undefined, { flags: ['--demo'] });
  const device = await (await createFleet(own)).createDevice();
  const rotated = await own.admin<{ device_secret: string }>('POST', `${device.adminPath}/rotate-secret`);
  await own.stop();
  const made = own.report.demo === null ? [] : [own.report.demo.device_secret];
  for (const secret of [device.secret, rotated.body.device_secret, ...made]) {
    expect(secret).toHaveLength(36);
    expect(await isStored(own.report, secret.slice(4))).toBe(false);
  }
  expect(await isStored(own.report, sha256(rotated.body.device_secret))).toBe(true);
});

it('D3: once rotated, the new secret holds and the old one no longer', async () => {
  const device = await fleet.createDevice();
  const { body } = await server.admin<{ device_secret: string }>('POST', `${device.adminPath}/rotate-secret`);
  const rekeyed = new TestDevice(server, device.fleetId, device.deviceId, body.device_secret);
  expect((await rekeyed.heartbeat()).status).toBe(201);
  expectError(await device.heartbeat(), 401, 'unauthorized', { detail: 'device_secret_incorrect' });
});
