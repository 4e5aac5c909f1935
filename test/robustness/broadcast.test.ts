import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import { afterAll, afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Broadcasts, importDevices, mailboxSizes } from '../harness/broadcast.ts';
import { fleetpost } from '../harness/command.ts';
import { createFleet, type TestFleet } from '../harness/device.ts';
import { shards, TestServer, temporaryFolder } from '../harness/server.ts';

const config = { broadcastMailsPerSecondMax: 1_000 };
const devicesCount = 1_500;

let folder: string;
let server: TestServer;
let fleet: TestFleet;
let broadcasts: Broadcasts;
const backups = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
afterAll(() => rmSync(backups, { recursive: true, force: true }));

beforeEach(async () => {
  folder = temporaryFolder();
  server = await TestServer.start(config, folder);
  fleet = await createFleet(server);
  broadcasts = new Broadcasts(fleet);
  await importDevices(fleet, { count: devicesCount });
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function begin(data = folder, shardsCount = shards): Promise<void> {
  server = await TestServer.start({ ...config, shards: shardsCount }, data);
  fleet.server = server;
}

/** Every device of the fleet has exactly one mail. */
async function expectOneEach(): Promise<void> {
  const sizes = [...(await mailboxSizes(fleet)).values()];
  expect({ devices: sizes.length, others: sizes.filter((size) => size !== 1).length }).toEqual({
    devices: devicesCount,
    others: 0,
  });
}

it('killed again and again in its midst, and started with other shard counts, it reaches every device once', async () => {
  const { broadcast_id: id } = await broadcasts.put({ name: 'note', to: { all: true } });
  const paused = await broadcasts.put({ name: 'other', to: { all: true } });
  await broadcasts.change(paused.broadcast_id, 'pause');
  let reached = 1;
  for (const shardsCount of [shards, shards + 1, shards]) {
    // In the midst of a chunk, whose progress is not noted.
    await vi.waitFor(
      async () => {
        const sizes = [...(await mailboxSizes(fleet)).values()];
        expect(sizes.filter((size) => size > 0).length).toBeGreaterThan(reached);
      },
      { timeout: 30_000, interval: 5 },
    );
    await server.kill();
    await begin(folder, shardsCount);
    reached = [...(await mailboxSizes(fleet)).values()].filter((size) => size > 0).length;
  }
  expect(await broadcasts.done(id)).toMatchObject({ queued: devicesCount, refused: 0 });
  expect(await broadcasts.get(paused.broadcast_id)).toMatchObject({ state: 'paused' });
  await broadcasts.change(paused.broadcast_id, 'cancel');
  const once = [...(await mailboxSizes(fleet)).values()];
  const before = (await broadcasts.get(paused.broadcast_id)).queued;
  expect(once.reduce((sum, size) => sum + size, 0)).toBe(devicesCount + before);
});

it('a backup that is taken in its midst is restored and goes on: no device gets it twice', async () => {
  const { broadcast_id: id } = await broadcasts.put({ name: 'note', to: { all: true } });
  await broadcasts.sent(id, 1);
  const backup = join(backups, uuidv7());
  expect((await server.admin('POST', '/backup', { folder: backup })).status).toBe(202);
  await vi.waitFor(
    async () => expect((await server.admin('GET', '/backup')).body).toMatchObject({ state: 'done' }),
    { timeout: 30_000, interval: 20 },
  );
  await server.kill();
  const restored = join(backups, uuidv7());
  const { status, stderr } = await fleetpost(['restore', backup, '--data', restored]);
  expect({ status, stderr }).toMatchObject({ status: 0 });
  await begin(restored);
  expect(await broadcasts.done(id)).toMatchObject({ queued: devicesCount, refused: 0 });
  await expectOneEach();
});

it('D18: the key of a mail and of a broadcast hold across kill -9', async () => {
  const device = await fleet.createDevice();
  const keyed = async (path: string, body: object, key: string) => {
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
  };
  const [mailKey, broadcastKey] = [uuidv7(), uuidv7()];
  const mailPath = `${device.adminPath}/mail/note`;
  const body = { name: 'note', to: { devices: [device.deviceId] } };
  const mail = await keyed(mailPath, { n: 1 }, mailKey);
  const broadcast = await keyed(broadcasts.path, body, broadcastKey);
  expect([mail.replayed, broadcast.replayed]).toEqual([null, null]);
  await server.kill();
  await begin();
  const { mail_id, broadcast_id } = { ...mail, ...broadcast } as Record<string, unknown>;
  expect(await keyed(mailPath, { n: 1 }, mailKey)).toMatchObject({ replayed: 'true', mail_id });
  expect(await keyed(broadcasts.path, body, broadcastKey)).toMatchObject({ replayed: 'true', broadcast_id });
  await broadcasts.done(String(broadcast_id));
  expect(await device.on(server).mails()).toHaveLength(2);
});
