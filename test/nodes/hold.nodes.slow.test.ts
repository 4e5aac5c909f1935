/** Hold and release of all nodes of a store. */

import { expect, it } from 'vitest';
import { anyObject, createFleet } from '../harness/devices/device.ts';
import { Receiver } from '../harness/features/receiver.ts';
import { relay } from '../harness/server/nodes.ts';
import { createStore, TestServer } from '../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 250 };
const config = { forwardHosts: 'localhost', forwardRetryMilliseconds: 20 };

it('a node that starts with --paused holds all nodes of the store, and a release on any releases all', async () => {
  const store = await createStore(2);
  await using receiver = await Receiver.start();
  await using first = await TestServer.start({ ...config, store });
  const fleet = await createFleet(first);
  await fleet.putSchema('message', 'opened', anyObject);
  const device = await fleet.createDevice();
  const hook = {
    type: 'webhook',
    url: receiver.url,
    tls: { ca: receiver.ca },
    filter: { kinds: ['datapoint'] },
  };
  await first.admin('PUT', `/fleets/${fleet.fleetId}/forwarders/hook`, hook);
  expect((await fleet.putAction('relay', relay)).status).toBe(201);
  const act = async (n: number): Promise<void> => {
    expect((await device.request('POST', '/v1/datapoint/reading', { n })).status).toBe(201);
    const opened = await device.request('POST', '/v1/msg/opened', { to: device.deviceId, n });
    expect(opened.status).toBe(201);
  };
  await act(1);
  await expect.poll(() => receiver.batches.length, patience).toBe(1);
  await expect.poll(() => device.mails(), patience).toHaveLength(1);

  // The first node is the leader, and acts for both.
  await using second = await TestServer.start({ ...config, store }, undefined, { flags: ['--paused'] });
  expect(second.report).toMatchObject({ held: true });
  const isHeld = async (): Promise<unknown> => (await first.admin('GET', '/hold')).body.held;
  await expect.poll(isHeld, patience).toBe(true);
  await act(2);
  await device.sendMail('later', '{}', `?deliver_at=${new Date(Date.now() + 1_000).toISOString()}`);
  // Long enough for what should not come: the sweep for due mail comes every second.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  expect(receiver.batches).toHaveLength(1);
  expect(await device.mails()).toHaveLength(1);

  expect((await second.admin('DELETE', '/hold')).body).toEqual({ released: true });
  await expect.poll(() => receiver.batches.length, patience).toBe(2);
  await expect.poll(() => device.mails(), patience).toHaveLength(3);
  expect(await isHeld()).toBe(false);
});
