/** Delivery guarantees of actions across kills. */

import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { anyObject, createFleet, type TestFleet } from '../../harness/devices/device.ts';
import { numbers } from '../../harness/server/nodes.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 20 };
/** Retries come quickly here. */
const config = { actionRetryMilliseconds: 20 };

let folder: string;
let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  folder = temporaryFolder();
  server = await TestServer.start(config, folder);
  fleet = await createFleet(server);
  await fleet.putSchema('message', 'opened', anyObject);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

it('across kill -9 every message is run for and every mail arrives once', async () => {
  const doors = await Promise.all(Array.from({ length: 6 }, () => fleet.createDevice()));
  const target = await fleet.createDevice();
  const source = `export default async (record, fleet) => { await fleet.send('${target.deviceId}', 'relayed', { n: record.payload.n }); }`;
  expect((await fleet.putAction('relay', source)).status).toBe(201);
  const sent: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    for (let n = 0; n < 5; n += 1) {
      await Promise.all(
        doors.map(async (door, index) => {
          const number = round * 100 + n * 10 + index;
          const answer = await door.on(server).request('POST', '/v1/msg/opened', { n: number });
          expect(answer.status).toBe(201);
          sent.push(number);
        }),
      );
    }
    await server.kill();
    server = await TestServer.start(config, folder);
  }
  await expect.poll(async () => (await numbers(target.on(server))).length, patience).toBe(sent.length);
  expect((await numbers(target.on(server))).toSorted((a, b) => a - b)).toEqual(
    sent.toSorted((a, b) => a - b),
  );
  const inHand = async () =>
    (await server.admin('GET', `/fleets/${fleet.fleetId}/actions/relay`)).body.in_hand;
  await expect.poll(inHand, patience).toBe(0);
});
