/** Hostile trial: answered changes seen by another worker at once. */

import { beforeAll, expect, it } from 'vitest';
import { createFleet, oneConnection, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { TestServer } from '../../harness/server/server.ts';

/** Read-your-writes over connections and workers: what was answered on one is seen on every other at once. */
const devices = 10;
/** Settlements of each device; set their sum with VISIBILITY_SETTLEMENTS=10000. */
const settlementsPerDevice = Number(process.env.VISIBILITY_SETTLEMENTS ?? 1_000) / devices;

let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  // The disabled device asks too often for D6.
  server = await TestServer.shared();
  fleet = await createFleet(server, { mailbox_mails_max: settlementsPerDevice });
});

async function deviceWithMail(): Promise<{ device: TestDevice; mailIds: string[] }> {
  const device = await fleet.createDevice();
  const mails: { mailId: string; size: number }[] = [];
  while (mails.length < settlementsPerDevice) {
    mails.push(...(await Promise.all(Array.from({ length: 20 }, () => device.sendMail()))));
  }
  // The order in which they were accepted, which parallel sending does not tell.
  return { device, mailIds: mails.sort((a, b) => a.size - b.size).map(({ mailId }) => mailId) };
}

it('D15, D19: every acknowledgement is visible on another worker at once', async () => {
  let stale = 0;
  await Promise.all(
    Array.from({ length: devices }, async () => {
      const { device, mailIds } = await deviceWithMail();
      // The acceptor deals connections round robin: these are on one worker after another.
      const agents = Array.from({ length: 3 }, () => oneConnection(server));
      for (const [index, mailId] of mailIds.entries()) {
        const acked = await device.settle('ack', mailId, agents[index % 3]);
        expect(acked.status).toBe(200);
        const seen = await device.request('GET', '/v1/mailbox/next', undefined, {}, agents[(index + 1) % 3]);
        const next = mailIds[index + 1] ?? '';
        if (seen.headers.get('x-mail-id') !== next) stale += 1;
        if (seen.headers.get('x-mailbox-size') !== String(mailIds.length - index - 1)) stale += 1;
      }
      await Promise.all(agents.map((agent) => agent.destroy()));
    }),
  );
  expect(stale).toBe(0);
});

it('D14: a requeue is visible on another worker at once', async () => {
  const device = await fleet.createDevice();
  const ids = [await device.sendMail(), await device.sendMail()].map(({ mailId }) => mailId);
  const agents = Array.from({ length: 3 }, () => oneConnection(server));
  for (let turn = 0; turn < 500; turn += 1) {
    await device.settle('requeue', ids[turn % 2] ?? '', agents[turn % 3]);
    const seen = await device.request('GET', '/v1/mailbox/next', undefined, {}, agents[(turn + 1) % 3]);
    expect(seen.headers.get('x-mail-id')).toBe(ids[(turn + 1) % 2]);
  }
  await Promise.all(agents.map((agent) => agent.destroy()));
});

it('D4: a device that was disabled is refused on every connection at once, and let in again', async () => {
  const device = await fleet.createDevice();
  const agents = Array.from({ length: 3 }, () => oneConnection(server));
  const beat = (turn: number) => device.request('POST', '/v1/heartbeat', undefined, {}, agents[turn % 3]);
  for (let turn = 0; turn < 60; turn += 1) {
    const enabled = turn % 2 === 1;
    await server.admin('PATCH', `/fleets/${fleet.fleetId}/devices/${device.deviceId}`, { enabled });
    const answers = await Promise.all([0, 1, 2].map(beat));
    expect(answers.map(({ status }) => status)).toEqual(Array(3).fill(enabled ? 201 : 401));
  }
  await Promise.all(agents.map((agent) => agent.destroy()));
});
