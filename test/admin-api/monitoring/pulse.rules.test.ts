import { expect, it } from 'vitest';
import type { PulseDocument } from '../../../src/contract/monitoring/pulse.ts';
import { createFleet } from '../../harness/devices/device.ts';
import { TestServer } from '../../harness/server/server.ts';
import { as } from '../../harness/server/token.ts';

it('a fleet has the requests of its own devices in its pulse, by kind, and a token of that fleet may see it', async () => {
  const server = await TestServer.shared();
  const [fleet, other] = [await createFleet(server), await createFleet(server)];
  const path = `/fleets/${fleet.fleetId}/pulse`;
  const [device, stranger] = [await fleet.createDevice(), await other.createDevice()];
  const sum = (counts: readonly number[]) => counts.reduce((all, one) => all + one, 0);
  const sumsAt = async (at: string) => {
    const { body } = await server.admin<PulseDocument>('GET', at);
    const { heartbeats, datapoints, messages, mailbox, refused } = body;
    return [heartbeats, datapoints, messages, mailbox, refused].map(sum);
  };
  expect(await sumsAt(path)).toEqual([0, 0, 0, 0, 0]);
  for (let sent = 0; sent < 3; sent += 1) expect((await device.heartbeat()).status).toBe(201);
  expect((await stranger.heartbeat()).status).toBe(201);
  expect((await device.request('POST', '/v1/datapoint/reading', { a: 1 })).status).toBe(201);
  expect((await device.request('POST', '/v1/msg/note', { a: 1 })).status).toBe(201);
  expect((await device.request('GET', '/v1/mailbox/next')).status).toBeLessThan(300);
  expect((await device.request('POST', '/v1/datapoint/unknown', { a: 1 })).status).toBe(404);
  const wrong = { 'X-Device-Secret': `FOS-${'0'.repeat(32)}` };
  expect((await device.request('POST', '/v1/heartbeat', undefined, wrong)).status).toBe(401);
  // Anybody can make up the ids of others.
  const unknown = { ...wrong, 'X-Device-ID': 'NOBODYS001' };
  expect((await device.request('POST', '/v1/heartbeat', undefined, unknown)).status).toBe(401);
  expect(await sumsAt(path)).toEqual([3, 1, 1, 1, 2]);
  expect(await sumsAt(`/fleets/${other.fleetId}/pulse`)).toEqual([1, 0, 0, 0, 0]);

  const made = await server.admin<{ token: string }>('POST', '/tokens', {
    name: 'reader',
    scopes: ['read'],
    fleet_id: fleet.fleetId,
  });
  expect(made.status).toBe(201);
  const { body } = await server.admin<PulseDocument>('GET', path);
  const minutes = body.refused.length;
  expect(minutes).toBeGreaterThan(0);
  expect(minutes).toBeLessThanOrEqual(60);
  for (const column of [body.heartbeats, body.other, body.connected, body.active])
    expect(column).toHaveLength(minutes);
  expect(Date.parse(body.time) - Date.parse(body.from)).toBeLessThan(minutes * 60_000);
  const asReader = (at: string) => as(server, made.body.token, 'GET', at);
  expect((await asReader(path)).status).toBe(200);
  expect((await asReader(`/fleets/${other.fleetId}/pulse`)).status).toBe(403);
});
