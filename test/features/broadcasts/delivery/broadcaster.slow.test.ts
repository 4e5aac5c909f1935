import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createFleet, type TestFleet } from '../../../harness/devices/device.ts';
import { Broadcasts, importDevices, mailboxSizes } from '../../../harness/features/broadcast.ts';
import { fleetpost } from '../../../harness/server/command.ts';
import { engine, shards, TestServer, temporaryFolder } from '../../../harness/server/server.ts';

const config = { broadcastMailsPerSecondMax: 800 };
const devicesCount = 1_000;

let folder: string;
let server: TestServer;
let fleet: TestFleet;
let broadcasts: Broadcasts;
const backups = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));

beforeAll(async () => {
  folder = temporaryFolder();
  server = await TestServer.start(config, folder);
  fleet = await createFleet(server);
  broadcasts = new Broadcasts(fleet);
  await importDevices(fleet, { count: devicesCount });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  for (const one of [folder, backups]) rmSync(one, { recursive: true, force: true });
});

async function begin(data = folder, shardsCount = shards): Promise<void> {
  server = await TestServer.start({ ...config, shards: shardsCount }, data);
  fleet.server = server;
}

/** Every device of the fleet has exactly that many mails. */
async function expectEach(mails: number): Promise<void> {
  const sizes = [...(await mailboxSizes(fleet)).values()];
  expect({ devices: sizes.length, others: sizes.filter((size) => size !== mails).length }).toEqual({
    devices: devicesCount,
    others: 0,
  });
}

async function mailsInAll(): Promise<number> {
  return [...(await mailboxSizes(fleet)).values()].reduce((sum, size) => sum + size, 0);
}

async function keyed(path: string, body: object, key: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${server.report.admin_url}/admin/v1${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${server.token}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify(body),
  });
  return { replayed: response.headers.get('idempotent-replayed'), ...((await response.json()) as object) };
}

it('killed in its midst and started with other shard counts, it reaches every device once; a paused one waits', async () => {
  const paused = await broadcasts.put({ name: 'other', to: { all: true } });
  await broadcasts.change(paused.broadcast_id, 'pause');
  const [mailKey, broadcastKey] = [uuidv7(), uuidv7()];
  const body = { name: 'note', to: { all: true } };
  // A device of another fleet, so that every device of this one has the same number of mails.
  const device = await (await createFleet(server)).createDevice();
  const mail = await keyed(`${device.adminPath}/mail/note`, { n: 1 }, mailKey);
  const broadcast = await keyed(broadcasts.path, body, broadcastKey);
  expect([mail.replayed, broadcast.replayed]).toEqual([null, null]);
  const id = String(broadcast.broadcast_id);
  for (const shardsCount of [shards, shards + 1, shards]) {
    const before = await mailsInAll();
    // In the midst of a chunk, whose progress is not noted; on a slow machine a start may see the end of it.
    await vi.waitFor(
      async () => {
        const isMore = (await mailsInAll()) > before;
        expect(isMore || (await broadcasts.get(id)).state === 'done').toBe(true);
      },
      { timeout: 60_000, interval: 5 },
    );
    await server.kill();
    await begin(folder, shardsCount);
  }
  // D18: the keys of senders hold across kill -9.
  expect(await keyed(`${device.adminPath}/mail/note`, { n: 1 }, mailKey)).toMatchObject({
    replayed: 'true',
    mail_id: mail.mail_id,
  });
  expect(await keyed(broadcasts.path, body, broadcastKey)).toMatchObject({
    replayed: 'true',
    broadcast_id: id,
  });
  expect(await device.on(server).mails()).toHaveLength(1);
  expect(await broadcasts.done(id)).toMatchObject({ queued: devicesCount, refused: 0 });
  expect(await broadcasts.get(paused.broadcast_id)).toMatchObject({ state: 'paused' });
  await broadcasts.change(paused.broadcast_id, 'resume');
  expect(await broadcasts.done(paused.broadcast_id)).toMatchObject({ queued: devicesCount, refused: 0 });
  await expectEach(2);
  // Three moves to other shard counts.
});

it.runIf(engine === 'lmdb')(
  'a backup that is taken in its midst is restored and goes on: no device gets it twice',
  async () => {
    const { broadcast_id: id } = await broadcasts.put({ name: 'note', to: { all: true } });
    await broadcasts.sent(id, 1);
    const backup = join(backups, 'backup');
    expect((await server.admin('POST', '/backup', { folder: backup })).status).toBe(202);
    await vi.waitFor(
      async () => expect((await server.admin('GET', '/backup')).body).toMatchObject({ state: 'done' }),
      { timeout: 60_000, interval: 20 },
    );
    await server.kill();
    const restored = join(backups, 'restored');
    const { status, stderr } = await fleetpost(['restore', backup, '--data', restored]);
    expect({ status, stderr }).toMatchObject({ status: 0 });
    await begin(restored);
    expect(await broadcasts.done(id)).toMatchObject({ queued: devicesCount, refused: 0 });
    await expectEach(3);
  },
  120_000,
);
