import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { verifyFolder } from '../../src/maintenance/verify.ts';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { engine, shards, TestServer, temporaryFolder } from '../harness/server/server.ts';

const soon = { timeout: 30_000, interval: 100 };
const folder = temporaryFolder();
let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  server = await TestServer.start({}, folder);
  fleet = await createFleet(server);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function restart(how: 'kill' | 'stop', count = shards): Promise<void> {
  await server[how]();
  server = await TestServer.start({ shards: count }, folder);
  fleet.server = server;
}

it('delivery and expiry hold across kill -9, a stop, and other shard counts; the folder is sound', async () => {
  const ends = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const one = await fleet.createDevice();
      const inThreeSeconds = new Date(Date.now() + 3_000).toISOString();
      const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
      return {
        device: one,
        present: (await one.sendMail('present')).mailId,
        brief: (await one.sendMail('brief', '{}', '?ttl_seconds=3')).mailId,
        soon: (await one.sendMail('soon', '{}', `?deliver_at=${inThreeSeconds}`)).mailId,
        late: (await one.sendMail('late', '{}', `?deliver_at=${inAnHour}`)).mailId,
      };
    }),
  );
  const states = async () => {
    const all = await Promise.all(
      ends.map(async ({ device: one, present, brief, soon: next, late }) => {
        const receipts = [present, brief, next, late].map((id) =>
          server.admin<{ state: string }>('GET', `${one.adminPath}/mail/${id}`),
        );
        return (await Promise.all(receipts)).map(({ body }) => body.state).join(' ');
      }),
    );
    return [...new Set(all)];
  };
  const waiting = async () => {
    const path = `/fleets/${fleet.fleetId}/devices?waiting_before=2099-01-01T00:00:00Z`;
    const { body } = await server.admin<{ items: { device_id: string; waiting_since: string }[] }>(
      'GET',
      path,
    );
    return body.items.map(({ device_id, waiting_since }) => `${waiting_since} ${device_id}`);
  };
  const sinceOf = async (one: TestDevice) =>
    (await server.admin<{ waiting_since: string }>('GET', one.adminPath)).body.waiting_since;
  const waits = await Promise.all(
    ends.map(async ({ device: one }) => `${await sinceOf(one)} ${one.deviceId}`),
  );
  const waitingBefore = waits.sort();
  await restart('kill');
  await expect.poll(waiting, soon).toEqual(waitingBefore);
  await expect.poll(states, soon).toEqual(['queued expired queued delayed']);
  await restart('stop', shards + 1);
  expect(await states()).toEqual(['queued expired queued delayed']);
  expect(await waiting()).toEqual(waitingBefore);
  await restart('kill', Math.max(1, shards - 1));
  expect(await states()).toEqual(['queued expired queued delayed']);
  expect(await waiting()).toEqual(waitingBefore);
  for (const { device: one, present, soon: next, late } of ends) {
    const here = one.on(server);
    expect((await here.mails()).map(({ name }) => name)).toEqual(['present', 'soon']);
    for (const id of [next, present]) expect((await here.settle('ack', id)).status).toBe(200);
    expect((await server.admin('DELETE', `${one.adminPath}/mail/${late}`)).status).toBe(200);
  }
  const { body } = await server.admin<{ items: unknown[] }>(
    'GET',
    `/fleets/${fleet.fleetId}/dead-letters?reason=expired`,
  );
  expect(body.items).toHaveLength(ends.length);
  await server.kill();
  if (engine !== 'lmdb') return;
  const verified = await verifyFolder(folder, { start: () => {}, onRecord: () => {} });
  expect(verified.findings.sentences).toEqual([]);
});
