/** Sweeps of a shard: bounded steps, and damage beside them. */

import { rmSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../../src/core/identity.ts';
import { generateUuid } from '../../../../src/core/uuid.ts';
import { undescribed } from '../../../../src/domain/devices/device-fields.ts';
import { sweepRecordsMax } from '../../../../src/domain/write.ts';
import { decodeDevice } from '../../../../src/storage/lmdb/layout/device-record.ts';
import { keyOfDevice } from '../../../../src/storage/lmdb/layout/keys.ts';
import { temporaryFolder } from '../../../harness/server/server.ts';
import { openShard } from '../../../harness/storage/shard.ts';

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const patience = { timeout: 60_000, interval: 50 };

it('one look of the sweeper removes all that is over, however much there is of it', async () => {
  const filled = openShard(folder, { commitDelayMilliseconds: 0 });
  const device = deviceKeyOf('AAAAAAAA', 'BBBBBBBBBB');
  const payload = Buffer.from('{}');
  const tenMinutesAgoMs = Date.now() - 600_000;
  const batches = 2 * sweepRecordsMax + 100;
  for (let count = 0; count < batches; count += 1) {
    const idempotency = { key: generateUuid(tenMinutesAgoMs), digest: Buffer.alloc(32) };
    await filled.shard.log.append({ device, kind: 'datapoint', schema: 'any', payload, idempotency });
  }
  await filled.close();
  // The first look after a start is for everything; the next one of that kind comes a minute later.
  const short = { logRetentionSeconds: 0.001, idempotencyWindowSeconds: 60 };
  const { environment, close } = openShard(folder, short);
  const records = (table: string): number => environment.sizeOf(table).records;
  expect(records('log')).toBe(batches);
  // The last batch stays: it is what tells the next position.
  await expect.poll(() => records('log'), patience).toBe(1);
  await expect.poll(() => records('idempotency'), patience).toBe(0);
  await close();
});

it('a damaged device whose old secret ends keeps no mail and no other device from being swept', async () => {
  const { shard, environment, close } = openShard(folder, { commitDelayMilliseconds: 0 });
  const devices = ['DEVICE0001', 'DEVICE0002'].map((id) => deviceKeyOf('FLEET001', id));
  const [damaged, sound] = devices as [DeviceKey, DeviceKey];
  const rest = { enabled: true, secretDigests: [Buffer.alloc(32)], ...undescribed, createdAtMs: 0 };
  await shard.devices.create(devices.map((device) => ({ device, ...rest })));
  const rotation = { digest: Buffer.alloc(32, 1), oldUntilMs: Date.now() + 1_500 };
  for (const device of devices) await shard.devices.change(device, { rotation });
  const mail = { name: 'note', payload: Buffer.from('{}'), ttlSeconds: 1, mailboxMailsMax: 9 };
  await shard.mail.enqueue({ device: sound, ...mail });
  const table = environment.table('devices');
  const bytes = table.getBinary(keyOfDevice(damaged)) as Buffer;
  await environment.write(() => table.putSync(keyOfDevice(damaged), bytes.subarray(0, 3)));
  await expect.poll(() => environment.sizeOf('retiring').records, patience).toBe(0);
  await expect.poll(() => environment.sizeOf('expiry').records, patience).toBe(0);
  expect(table.getBinary(keyOfDevice(damaged))).toHaveLength(3);
  const rotated = decodeDevice(sound, table.getBinary(keyOfDevice(sound)) as Buffer);
  expect(rotated.secretDigests).toEqual([Buffer.alloc(32, 1)]);
  await close();
});
