import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import type { DeviceKey } from '../../src/core/identity.ts';
import { generateUuid } from '../../src/core/uuid.ts';
import type { BroadcastOutcome } from '../../src/shard/broadcast.ts';
import { sweepRecordsMax } from '../../src/shard/write.ts';
import { type OpenShard, openShard } from '../harness/shard.ts';

const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

const devices = Array.from({ length: 5 }, (_, index) => `FLEET001DEVICE000${index}` as DeviceKey);
const [first, second] = devices as [DeviceKey, DeviceKey];
let opened: OpenShard;
let folders = 0;
let path: string;

beforeEach(async () => {
  folders += 1;
  path = join(folder, String(folders));
  opened = openShard(path);
  await opened.shard.createDevices(devices.map(created));
});
afterEach(() => opened.close());

const created = (device: DeviceKey) => ({
  device,
  enabled: true,
  secretDigests: [Buffer.alloc(32)],
  name: '',
  tags: [],
  createdAtMs: 0,
});
const mail = { name: 'note', payload: Buffer.from('{"n":1}'), lifeSeconds: 60, mailboxMailsMax: 2 };
const roomy = { ...mail, mailboxMailsMax: 65_535 };

function send(broadcast: Uint8Array, to: readonly DeviceKey[] = devices): Promise<BroadcastOutcome> {
  return opened.shard.broadcast({ broadcast, devices: to, mail });
}

async function reopen(): Promise<void> {
  await opened.close();
  opened = openShard(path);
}

const sizes = async (): Promise<number[]> =>
  Promise.all(devices.map(async (device) => opened.shard.mailboxSize(device)));

it('each device gets the mail of a broadcast once, however often it is sent and across restarts', async () => {
  const one = generateUuid();
  expect(await send(one, [first, second, first])).toEqual({ queued: 3, refused: [] });
  expect(await send(one)).toEqual({ queued: 5, refused: [] });
  await reopen();
  expect(await send(one)).toEqual({ queued: 5, refused: [] });
  expect(await sizes()).toEqual([1, 1, 1, 1, 1]);
  await send(generateUuid());
  expect(await sizes()).toEqual([2, 2, 2, 2, 2]);
});

it('says of each device that did not get it why, and gives it to it when it is sent again', async () => {
  const one = generateUuid();
  await send(generateUuid(), [first]);
  await send(generateUuid(), [first]);
  const unknown = 'FLEET001NOBODY0001' as DeviceKey;
  expect(await send(one, [first, unknown, second])).toEqual({
    queued: 1,
    refused: [
      { device: first, reason: 'mailbox_full' },
      { device: unknown, reason: 'device_not_found' },
    ],
  });
  await opened.shard.createDevices([created(unknown)]);
  expect(await send(one, [unknown, second])).toEqual({ queued: 2, refused: [] });
});

it('who has had it is forgotten up to where each broadcast has come, and with those that are over', async () => {
  const [over, active, behind] = [generateUuid(), generateUuid(), generateUuid()];
  for (const broadcast of [over, active, behind])
    await opened.shard.broadcast({ broadcast, devices, mail: roomy });
  const progress = [
    { broadcast: active, after: second },
    { broadcast: behind, after: 'FLEET001' },
  ];
  expect(await opened.shard.forgetBroadcasts(progress)).toBe(5 + 2);
  const commits = opened.commits();
  expect(await opened.shard.forgetBroadcasts(progress)).toBe(0);
  expect(opened.commits()).toBe(commits);
  for (const device of devices) await opened.shard.deleteDevice(device);
  // Known, though the device is not.
  expect((await send(active)).queued).toBe(3);
  expect((await send(behind)).queued).toBe(5);
  expect((await send(over)).queued).toBe(0);
  expect(await opened.shard.forgetBroadcasts([])).toBe(8);
});

it('forgets step by step, so that nobody waits for it long', async () => {
  const many = Array.from({ length: sweepRecordsMax + 1 }, () => generateUuid());
  await Promise.all(many.map((one) => opened.shard.broadcast({ broadcast: one, devices: [first], mail })));
  expect(await opened.shard.forgetBroadcasts([])).toBe(2);
  await Promise.all(
    many.map((one) => opened.shard.broadcast({ broadcast: one, devices: [second], mail: roomy })),
  );
  expect(await opened.shard.forgetBroadcasts([])).toBe(sweepRecordsMax);
  expect(await opened.shard.forgetBroadcasts([])).toBe(1);
});

it('D18: a mail with the key of its sender is queued once, also across a restart', async () => {
  const idempotency = { key: generateUuid(), digest: Buffer.alloc(32, 1) };
  const enqueue = (more: object = {}, device = first) =>
    opened.shard.enqueue({ ...mail, device, idempotency, ...more });
  const [stored, replayed] = await Promise.all([enqueue(), enqueue()]);
  expect(stored).toMatchObject({ result: 'queued', repeated: false });
  expect(replayed).toEqual({ ...stored, repeated: true });
  await reopen();
  expect(await enqueue()).toEqual({ ...stored, repeated: true });
  const other = { idempotency: { ...idempotency, digest: Buffer.alloc(32, 2) } };
  expect(await enqueue(other)).toEqual({ result: 'key_reused' });
  // A key belongs to the mailbox it is for, and is not the device's own.
  expect(await enqueue({}, second)).toMatchObject({ result: 'queued', repeated: false });
  const ingest = { device: first, kind: 'message' as const, schema: 'note', payload: mail.payload };
  expect(await opened.shard.ingest({ ...ingest, ...other })).toBe('stored');
  const old = { idempotency: { ...idempotency, key: generateUuid(Date.now() - 2 * 86_400_000) } };
  expect(await enqueue(old)).toEqual({ result: 'key_too_old' });
  expect(await sizes()).toEqual([1, 1, 0, 0, 0]);
});

it('D18: a mail that was refused leaves no trace of its key', async () => {
  const idempotency = { key: generateUuid(), digest: Buffer.alloc(32, 1) };
  const enqueue = () => opened.shard.enqueue({ ...mail, device: first, mailboxMailsMax: 1, idempotency });
  const before = await opened.shard.enqueue({ ...mail, device: first });
  if (before.result !== 'queued') throw new Error(before.result);
  expect(await enqueue()).toMatchObject({ result: 'mailbox_full' });
  await opened.shard.settle({ device: first, mailId: before.mailId, verb: 'ack' });
  expect(await enqueue()).toMatchObject({ result: 'queued', repeated: false });
});
