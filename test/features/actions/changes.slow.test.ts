/** Actions that are changed, deleted or damaged while records wait for them. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { generateUuid } from '../../../src/core/uuid.ts';
import { openJournal } from '../../../src/maintenance/environments.ts';
import { anyObject, createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { databaseOf, TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { queryDatabase } from '../../harness/storage/log.ts';

const patience = { timeout: 60_000, interval: 20 };

let folder: string;
let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  folder = temporaryFolder();
  server = await TestServer.start({ actionRetryMilliseconds: 20 }, folder);
});
beforeEach(async () => {
  fleet = await createFleet(server);
  await fleet.putSchema('message', 'opened', anyObject);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const relay = (to: string) =>
  `export default (record, fleet) => { fleet.send('${to}', 'relayed', { n: record.payload.n }); }`;

async function open(door: TestDevice, n: number): Promise<void> {
  expect((await door.on(server).request('POST', '/v1/msg/opened', { n })).status).toBe(201);
}

async function numbers(device: TestDevice): Promise<unknown[]> {
  return (await device.on(server).mails()).map(({ payload }) => payload.n);
}

/** Puts an entry into the outbox of a server that has ended. */
async function putInOutbox(key: Buffer, value: Buffer): Promise<void> {
  const url = databaseOf(folder);
  if (url !== undefined) {
    await queryDatabase(url, "INSERT INTO stored VALUES ('actions', 'outbox', $1, $2, 0, 0)", [key, value]);
    return;
  }
  const journal = openJournal(join(folder, 'actions'), { mapBytesMax: 1024 ** 3, diskFreeBytesMin: 0 });
  await journal.commit(() => journal.tables.outbox.put(key, value));
  await journal.close();
}

it('an action that is enabled with a new version takes no notice of what was stored while it was disabled', async () => {
  const [door, target] = [await fleet.createDevice(), await fleet.createDevice()];
  await fleet.putAction('relay', relay(target.deviceId));
  await server.admin('PATCH', `/fleets/${fleet.fleetId}/actions/relay`, { enabled: false });
  await open(door, 1);
  await fleet.putAction('relay', relay(target.deviceId), { enabled: true });
  await open(door, 2);
  await expect.poll(() => numbers(target), patience).toContain(2);
  expect(await numbers(target)).toEqual([2]);
});

it('an action that is deleted while it is put again runs for nothing from before', async () => {
  const [door, target] = [await fleet.createDevice(), await fleet.createDevice()];
  await open(door, 0);
  await fleet.putAction('relay', relay(target.deviceId));
  for (const n of [1, 2, 3]) await open(door, n);
  await expect.poll(() => numbers(target), patience).toEqual([1, 2, 3]);
  const record = { device: door.deviceId, payload: { slow: true } };
  const slow = `export default (record, fleet) => {
    if (record.payload.slow) for (const end = Date.now() + 300; Date.now() < end; );
    else fleet.send('${target.deviceId}', 'relayed', { n: record.payload.n });
  }`;
  const putting = fleet.putAction('relay', slow, {
    tests: Array.from({ length: 5 }, () => ({ record })),
    force: true,
  });
  // Most likely while its tests run; what is there if not is put once more.
  await new Promise((resolve) => setTimeout(resolve, 500));
  await server.admin('DELETE', `/fleets/${fleet.fleetId}/actions/relay`);
  await putting;
  await fleet.putAction('relay', slow);
  await open(door, 4);
  await expect.poll(() => numbers(target), patience).toContain(4);
  expect(await numbers(target)).toEqual([1, 2, 3, 4]);
});

it('a damaged outbox entry ends neither the server nor the actions', async () => {
  const [door, target] = [await fleet.createDevice(), await fleet.createDevice()];
  await server.stop();
  await putInOutbox(generateUuid(), Buffer.from('not an entry'));
  server = await TestServer.start({}, folder);
  fleet.server = server;
  await fleet.putAction('relay', relay(target.deviceId));
  await open(door, 1);
  await expect.poll(() => numbers(target), patience).toEqual([1]);
  expect(server.stderr).toContain('damaged outbox entry skipped');
});
