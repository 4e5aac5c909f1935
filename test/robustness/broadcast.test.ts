import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { Broadcasts, importDevices, mailboxSizes } from '../harness/broadcast.ts';
import { fleetpost } from '../harness/command.ts';
import { createFleet, type TestFleet } from '../harness/device.ts';
import { shards, TestServer, temporaryFolder } from '../harness/server.ts';

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

it('killed in its midst and started with other shard counts, it reaches every device once; a paused one waits', async () => {
  const paused = await broadcasts.put({ name: 'other', to: { all: true } });
  await broadcasts.change(paused.broadcast_id, 'pause');
  const { broadcast_id: id } = await broadcasts.put({ name: 'note', to: { all: true } });
  for (const shardsCount of [shards, shards + 1, shards]) {
    const before = await mailsInAll();
    // In the midst of a chunk, whose progress is not noted.
    await vi.waitFor(async () => expect(await mailsInAll()).toBeGreaterThan(before), {
      timeout: 30_000,
      interval: 5,
    });
    await server.kill();
    await begin(folder, shardsCount);
  }
  expect(await broadcasts.done(id)).toMatchObject({ queued: devicesCount, refused: 0 });
  expect(await broadcasts.get(paused.broadcast_id)).toMatchObject({ state: 'paused' });
  await broadcasts.change(paused.broadcast_id, 'resume');
  expect(await broadcasts.done(paused.broadcast_id)).toMatchObject({ queued: devicesCount, refused: 0 });
  await expectEach(2);
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
  await server.admin('DELETE', device.adminPath);
});

it('a backup that is taken in its midst is restored and goes on: no device gets it twice', async () => {
  const { broadcast_id: id } = await broadcasts.put({ name: 'note', to: { all: true } });
  await broadcasts.sent(id, 1);
  const backup = join(backups, 'backup');
  expect((await server.admin('POST', '/backup', { folder: backup })).status).toBe(202);
  await vi.waitFor(
    async () => expect((await server.admin('GET', '/backup')).body).toMatchObject({ state: 'done' }),
    { timeout: 30_000, interval: 20 },
  );
  await server.kill();
  const restored = join(backups, 'restored');
  const { status, stderr } = await fleetpost(['restore', backup, '--data', restored]);
  expect({ status, stderr }).toMatchObject({ status: 0 });
  await begin(restored);
  expect(await broadcasts.done(id)).toMatchObject({ queued: devicesCount, refused: 0 });
  await expectEach(3);
});
