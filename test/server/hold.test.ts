/** A server that is started with `--paused`. */

import { expect, it } from 'vitest';
import { createFleet } from '../harness/devices/device.ts';
import { Receiver } from '../harness/features/receiver.ts';
import { TestServer } from '../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 50 };

it('a server that is started with --paused serves devices, and forwards and delivers nothing until it is released', async () => {
  await using server = await TestServer.start({ forwardHosts: 'localhost' }, undefined, {
    flags: ['--paused'],
  });
  await using receiver = await Receiver.start();
  const fleet = await createFleet(server);
  const device = await fleet.createDevice();
  const hook = {
    type: 'webhook',
    url: receiver.url,
    tls: { ca: receiver.ca },
    filter: { kinds: ['datapoint'] },
  };
  await server.admin('PUT', `/fleets/${fleet.fleetId}/forwarders/hook`, hook);
  const deliverAt = new Date(Date.now() + 1_000).toISOString();
  expect((await device.sendMail('later', '{}', `?deliver_at=${deliverAt}`)).status).toBe(201);
  expect((await device.request('POST', '/v1/datapoint/reading', { n: 1 })).status).toBe(201);
  // Long enough for what should not come: the sweep for due mail comes every second.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  expect(receiver.batches).toEqual([]);
  expect((await device.next()).status).toBe(204);

  expect((await server.admin('DELETE', '/hold')).body).toEqual({ released: true });
  await expect.poll(() => receiver.batches.length, patience).toBe(1);
  await expect.poll(async () => (await device.next()).headers.get('x-mail-name'), patience).toBe('later');
});
