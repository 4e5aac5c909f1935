/** Paused consumers. */

import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';

interface Batch {
  batch_id: string | null;
  records: { payload: { n: number } }[];
  paused?: boolean;
}

const data = temporaryFolder();
let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;
beforeAll(async () => {
  server = await TestServer.start({}, data);
  fleet = await createFleet(server);
  device = await fleet.createDevice();
});
afterAll(async () => {
  await server.stop();
  rmSync(data, { recursive: true, force: true });
});

const path = (name: string, verb = ''): string => `/fleets/${fleet.fleetId}/consumers/${name}${verb}`;
const pause = (name: string, enabled = false) => server.admin('PATCH', path(name), { enabled });
/** One record at a time. */
const fetchBatch = async (name: string, wait_seconds = 0): Promise<Batch> =>
  (await server.admin<Batch>('POST', path(name, '/fetch'), { wait_seconds, max: 1 })).body;
const settle = (name: string, verb: 'acknowledge' | 'release', batch_id: string | null) =>
  server.admin('POST', path(name, `/${verb}`), { batch_id });
const numbersOf = ({ records }: Batch): number[] => records.map(({ payload }) => payload.n);
async function send(...numbers: number[]): Promise<void> {
  for (const n of numbers) {
    expect((await device.on(server).request('POST', '/v1/msg/note', { n })).status).toBe(201);
  }
}

it('a paused consumer leases no batch; what is out is settled, and what came meanwhile is leased once it is resumed', async () => {
  await server.admin('PUT', path('hall'), {});
  await send(1);
  const out = await fetchBatch('hall', 10);
  expect(numbersOf(out)).toEqual([1]);
  expect(await pause('hall')).toMatchObject({ status: 200, body: { enabled: false, behind: 1 } });
  await send(2);
  expect(await fetchBatch('hall', 1)).toEqual({
    ...{ batch_id: null, shard: null, expires_at: null, records: [] },
    paused: true,
  });
  expect(await settle('hall', 'release', out.batch_id)).toMatchObject({ body: { records: 1 } });
  expect(await fetchBatch('hall')).toMatchObject({ batch_id: null, paused: true });
  expect(await pause('hall', true)).toMatchObject({ status: 200, body: { enabled: true } });
  const again = await fetchBatch('hall', 10);
  expect(numbersOf(again)).toEqual([1]);
  await pause('hall');
  expect(await settle('hall', 'acknowledge', again.batch_id)).toMatchObject({ body: { records: 1 } });
  expect((await server.admin('GET', path('hall'))).body).toMatchObject({ enabled: false, behind: 1 });
  await pause('hall', true);
  const last = await fetchBatch('hall', 10);
  expect(numbersOf(last)).toEqual([2]);
  await settle('hall', 'acknowledge', last.batch_id);
  expect(await fetchBatch('hall')).toEqual({ batch_id: null, shard: null, expires_at: null, records: [] });
});

it('a fetch that waits gets nothing once its consumer is paused, and goes on when it is resumed', async () => {
  await server.admin('PUT', path('late'), { start: 'latest' });
  const waiting = fetchBatch('late', 60);
  await pause('late');
  await send(3);
  expect(await Promise.race([waiting, fetchBatch('late', 1)])).toMatchObject({ batch_id: null });
  await pause('late', true);
  expect(numbersOf(await waiting)).toEqual([3]);
});

it('a pause outlives a restart and changes of the consumer, and is in the audit log', async () => {
  const declared = await server.admin('PUT', path('asleep'), { enabled: false });
  expect([declared.status, declared.body]).toMatchObject([201, { enabled: false }]);
  expect(await server.stop()).toBe(0);
  server = await TestServer.start({}, data);
  expect(await fetchBatch('asleep')).toMatchObject({ batch_id: null, paused: true });
  const changed = await server.admin('PUT', path('asleep'), { lease_seconds: 60 });
  expect(changed.body).toMatchObject({ enabled: false, lease_seconds: 60 });
  await pause('asleep', true);
  expect(numbersOf(await fetchBatch('asleep', 10))).toEqual([1]);
  const { body } = await server.admin<{ items: { method: string; about: object }[] }>(
    'GET',
    `/audit?fleet=${fleet.fleetId}`,
  );
  const about = body.items.filter(({ method }) => method === 'PATCH').map((entry) => entry.about);
  expect(about[0]).toMatchObject({ name: 'asleep', enabled: 'true' });
});

it('nobody pauses what is not there, a forwarder by that route, or with less than the scope admin', async () => {
  expect(await pause('nobody')).toMatchObject({ status: 404, body: { error: 'consumer_not_found' } });
  expect(await pause('forwarder:1')).toMatchObject({ status: 404, body: { error: 'consumer_not_found' } });
  expect((await server.admin('PATCH', path('hall'), {})).status).toBe(400);
  expect((await server.admin('PATCH', path('hall'), { enabled: 'no' })).status).toBe(400);
  const { body } = await server.admin<{ token: string }>('POST', '/tokens', {
    name: 'reader',
    scopes: ['read', 'mail', 'provision'],
  });
  const answer = await fetch(`${server.report.admin_url}/admin/v1${path('hall')}`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${body.token}`, 'content-type': 'application/json' },
    body: '{"enabled":false}',
  });
  expect(answer.status).toBe(403);
});
