/** Decision D25: the time that a device gives its record. */

import { uuidv7 } from 'uuidv7';
import { beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { expectError } from '../harness/devices/routes.ts';
import { TestServer } from '../harness/server/server.ts';

const second = 1_000;
const day = 86_400 * second;

let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
  device = await fleet.createDevice();
});

const isoAt = (timeMs: number): string => new Date(timeMs).toISOString();
const send = (recordedAt: string, more: Record<string, string> = {}, path = '/v1/datapoint/reading') =>
  device.request('POST', path, '{"a":1}', { 'Recorded-At': recordedAt, ...more });

/** The records of the device, as the admin API gives them out. */
async function records(): Promise<{ recorded_at?: string; stored_at: string; payload: object }[]> {
  const url = `${server.report.admin_url}/admin/v1/fleets/${fleet.fleetId}/records?device=${device.deviceId}`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${server.token}` } });
  const lines = (await answer.text()).split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line));
}

it('D25: a datapoint and a message keep the time that the device gave them, beside that of their storage', async () => {
  const atMs = Date.now() - 3 * day;
  const day3 = isoAt(atMs);
  const spellings = [
    day3,
    day3.replace('Z', '+00:00'),
    day3.toLowerCase(),
    day3.replace('Z', '999999Z'),
    `${isoAt(atMs + 5.5 * 3_600 * second).slice(0, -1)}+05:30`,
  ];
  for (const spelling of spellings) expect((await send(spelling)).status).toBe(201);
  expect((await send(day3, {}, '/v1/msg/note')).status).toBe(201);
  const withoutFraction = `${day3.slice(0, 19)}Z`;
  expect((await send(withoutFraction)).status).toBe(201);
  expect((await device.request('POST', '/v1/datapoint/reading', '{"a":2}')).status).toBe(201);
  const found = await records();
  expect(found.map(({ recorded_at }) => recorded_at)).toEqual([
    ...Array.from({ length: 6 }, () => day3),
    withoutFraction.replace('Z', '.000Z'),
    undefined,
  ]);
  for (const { stored_at } of found) expect(Date.now() - Date.parse(stored_at)).toBeLessThan(60 * second);
});

it.each([
  ['nothing', () => ''],
  ['a word', () => 'yesterday'],
  ['a time without a zone', () => '2026-01-31T08:00:00'],
  ['a day', () => isoAt(Date.now()).slice(0, 10)],
  ['a day that is in no calendar', () => `${new Date().getUTCFullYear()}-02-31T08:00:00Z`],
  ['an hour that is in no day', () => isoAt(Date.now()).replace(/T\d\d/, 'T24')],
  ['an HTTP date', () => new Date().toUTCString()],
  ['milliseconds', () => String(Date.now())],
  ['more than 30 days ago', () => isoAt(Date.now() - 30 * day - 60 * second)],
  ['more than 5 minutes ahead', () => isoAt(Date.now() + 310 * second)],
])('D25: %s is no time that a device may give, and nothing is stored', async (_, spoilt) => {
  const recordedAt = spoilt();
  const before = (await records()).length;
  for (const path of ['/v1/datapoint/reading', '/v1/msg/note']) {
    expectError(await send(recordedAt, {}, path), 400, 'invalid_recorded_at');
  }
  expect(await records()).toHaveLength(before);
});

it('D25: almost 30 days ago and almost 5 minutes ahead are taken', async () => {
  expect((await send(isoAt(Date.now() - 30 * day + 60 * second))).status).toBe(201);
  expect((await send(isoAt(Date.now() + 290 * second))).status).toBe(201);
});

it('D18, D25: the time is part of what an idempotency key stands for, however it is spelt', async () => {
  const atMs = Date.now() - day;
  const key = { 'Idempotency-Key': uuidv7() };
  expect((await send(isoAt(atMs), key)).headers.get('idempotent-replayed')).toBeNull();
  const again = await send(isoAt(atMs).replace('Z', '+00:00'), key);
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true']);
  expectError(await send(isoAt(atMs + 1), key), 400, 'idempotency_key_reused');
  const without = await device.request('POST', '/v1/datapoint/reading', '{"a":1}', key);
  expectError(without, 400, 'idempotency_key_reused');
});
