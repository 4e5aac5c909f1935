import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../../src/core/identity.ts';
import { generateUuid } from '../../../../src/core/uuid.ts';
import { undescribed } from '../../../../src/domain/devices/device-fields.ts';
import { sweepRecordsMax } from '../../../../src/domain/write.ts';
import { temporaryFolder } from '../../../harness/server/server.ts';
import { type OpenShard, openShard } from '../../../harness/storage/shard.ts';

const folder = temporaryFolder();
let opened: OpenShard;

beforeAll(() => {
  opened = openShard(folder);
});
afterAll(async () => {
  await opened.close();
  rmSync(folder, { recursive: true, force: true });
});

const created = (device: DeviceKey) => ({
  device,
  enabled: true,
  secretDigests: [Buffer.alloc(32)],
  ...undescribed,
  createdAtMs: 0,
});
const mail = { name: 'note', payload: Buffer.from('{"n":1}'), ttlSeconds: 60, mailboxMailsMax: 2 };

it('who has had it is forgotten step by step', async () => {
  const devices = Array.from({ length: sweepRecordsMax + 1 }, (_, n) =>
    created(deviceKeyOf('FLEET001', `A${String(n).padStart(9, '0')}`)),
  );
  await opened.shard.devices.create(devices);
  const broadcast = generateUuid();
  await opened.shard.mail.broadcast({ broadcast, devices: devices.map(({ device }) => device), mail });
  expect(await opened.shard.dedupe.forgetBroadcast(broadcast)).toBe(sweepRecordsMax);
  expect(await opened.shard.dedupe.forgetBroadcast(broadcast)).toBe(1);
  expect(opened.shard.dedupe.broadcasts(undefined, 10)).toEqual([]);
});
