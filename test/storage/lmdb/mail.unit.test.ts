import { rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { formatUuid } from '../../../src/core/uuid.ts';
import type { Device } from '../../../src/domain/devices/device.ts';
import { undescribed } from '../../../src/domain/devices/device-fields.ts';
import type { Enqueue } from '../../../src/domain/mail/mail.ts';
import { sweepRecordsMax } from '../../../src/domain/write.ts';
import type { Config } from '../../../src/server/configuration/config.ts';
import { readSequence } from '../../../src/storage/lmdb/layout/keys.ts';
import { temporaryFolder } from '../../harness/server/server.ts';
import { type OpenShard, openShard, sweepMilliseconds } from '../../harness/storage/shard.ts';

const patience = { timeout: 60_000, interval: 50 };
const fleetId = 'FLEET001';
const device = deviceKeyOf(fleetId, 'DEVICE0001');

let folder: string;
let opened: OpenShard;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  await opened.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(config: Partial<Config> = {}): Promise<void> {
  opened = openShard(folder, { commitDelayMilliseconds: 0, ...config });
  await opened.shard.devices.create([created(device)]);
}

function created(key: DeviceKey): Device {
  return {
    device: key,
    enabled: true,
    secretDigests: [Buffer.alloc(32)],
    ...undescribed,
    createdAtMs: 0,
  };
}

async function send(more: Partial<Enqueue> = {}): Promise<Uint8Array> {
  const mail = { device, name: 'note', payload: Buffer.from('{}'), ttlSeconds: 60, mailboxMailsMax: 65_535 };
  const outcome = await opened.shard.mail.enqueue({ ...mail, ...more });
  if (outcome.result !== 'queued') throw new Error(outcome.result);
  return outcome.mailId;
}

const letters = async (): Promise<string[]> =>
  (await opened.shard.deadLetters.list(fleetId, {}, '', 1_000)).items.map(({ mailId }) =>
    mailId.toString('hex'),
  );

const records = (table: string): number => opened.environment.sizeOf(table).records;

it('D16: letters that go for newer ones are counted, and a lower limit is come down to a step at a time', async () => {
  await open({ deadLettersPerFleetMax: 3 });
  const ids: string[] = [];
  for (let count = 0; count < 5; count += 1) {
    const mailId = await send();
    await opened.shard.mail.settle({ device, mailId, verb: 'reject' });
    ids.push(Buffer.from(mailId).toString('hex'));
  }
  expect(opened.droppedLetters()).toBe(2);
  await opened.close();
  opened = openShard(folder, { deadLettersPerFleetMax: 1 });
  const last = await send();
  await opened.shard.mail.settle({ device, mailId: last, verb: 'reject' });
  expect(await letters()).toEqual([ids[4], Buffer.from(last).toString('hex')]);
});

it('D16, D17: receipts and dead letters go when they were kept for long enough, however many there are', async () => {
  await open();
  const count = 2 * sweepRecordsMax + 100;
  const ids = await Promise.all(Array.from({ length: count }, () => send()));
  await Promise.all(ids.map((mailId) => opened.shard.mail.settle({ device, mailId, verb: 'reject' })));
  expect([records('receipts'), records('dead')]).toEqual([count, count]);
  const waiting = await send();
  await opened.close();
  opened = openShard(folder, { receiptRetentionSeconds: 0.001, deadLetterRetentionSeconds: 0.001 });
  await expect.poll(() => [records('receipts'), records('dead')], patience).toEqual([0, 0]);
  expect(await opened.shard.mail.receipt(device, waiting)).toMatchObject({ state: 'queued' });
});

it('what is kept for long stays, and an idle shard with it commits nothing', async () => {
  await open();
  const mailId = await send();
  await opened.shard.mail.settle({ device, mailId, verb: 'reject' });
  await opened.close();
  opened = openShard(folder);
  await expect.poll(() => opened.commits(), patience).toBeGreaterThan(0);
  const commits = opened.commits();
  // Long enough for what should not come.
  await new Promise((resolve) => setTimeout(resolve, 5 * sweepMilliseconds));
  expect(opened.commits()).toBe(commits);
  expect([records('receipts'), records('dead')]).toEqual([1, 1]);
});

it('a device that is deleted takes its delayed mail along at once, and its dead letters with a sweep', async () => {
  await open();
  const rejected = await send();
  await opened.shard.mail.settle({ device, mailId: rejected, verb: 'reject' });
  const delayed = await send({ deliverAtMs: Date.now() + 60_000 });
  await opened.shard.devices.delete(device);
  expect([records('delayed'), records('due')]).toEqual([0, 0]);
  expect(await opened.shard.mail.receipt(device, delayed)).toBeUndefined();
  expect(await opened.shard.mail.receipt(device, rejected)).toMatchObject({ state: 'rejected' });
  const replay = { device, mailId: rejected, ttlSeconds: 60, mailboxMailsMax: 1 };
  const { result } = await opened.shard.deadLetters.replay(replay);
  // The sweep may be there first.
  expect(['device_not_found', 'mail_not_found']).toContain(result);
  await opened.close();
  opened = openShard(folder);
  await expect.poll(() => records('dead'), patience).toBe(0);
});

it('mail that is delayed to one moment comes in the order that it was sent in, however much there is of it', async () => {
  await open({ delayedMailsPerDeviceMax: 3_000 });
  const deliverAtMs = Date.now() + 4_000;
  const count = 500;
  const ids = await Promise.all(Array.from({ length: count }, () => send({ deliverAtMs })));
  expect(records('delayed')).toBe(count);
  const dueMs = [...opened.environment.table('due').getKeys({})].map((key) => readSequence(key, 0));
  expect(new Set(dueMs)).toEqual(new Set([deliverAtMs]));
  await expect.poll(() => records('delayed'), patience).toBe(0);
  const order: string[] = [];
  for (let from = 0; from < (await opened.shard.log.end()); ) {
    const page = await opened.shard.log.read(from);
    for (const { payload } of page.records) {
      const { mail_id: mailId, event } = JSON.parse(payload.toString('utf8'));
      if (event === 'queued') order.push(mailId);
    }
    from = page.next;
  }
  expect(order).toEqual(ids.map((id) => formatUuid(id)));
});
