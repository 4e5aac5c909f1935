import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { DeviceKey } from '../../../src/core/identity.ts';
import { generateUuid } from '../../../src/core/uuid.ts';
import { sweepRecordsMax } from '../../../src/domain/write.ts';
import { temporaryFolder } from '../../harness/server.ts';
import { type OpenShard, openShard } from '../../harness/shard.ts';

const folder = temporaryFolder();
const first = 'FLEET001DEVICE0001' as DeviceKey;
const second = 'FLEET001DEVICE0002' as DeviceKey;
let opened: OpenShard;

beforeAll(async () => {
  opened = openShard(folder);
  await opened.shard.devices.create([first, second].map(created));
});
afterAll(async () => {
  await opened.close();
  rmSync(folder, { recursive: true, force: true });
});

const created = (device: DeviceKey) => ({
  device,
  enabled: true,
  secretDigests: [Buffer.alloc(32)],
  name: '',
  tags: [],
  createdAtMs: 0,
});
const mail = { name: 'note', payload: Buffer.from('{"n":1}'), ttlSeconds: 60, mailboxMailsMax: 2 };
const roomy = { ...mail, mailboxMailsMax: 65_535 };

it('who has had it is forgotten step by step, and without a commit where there is nothing', async () => {
  const many = Array.from({ length: sweepRecordsMax + 1 }, () => generateUuid());
  await Promise.all(
    many.map((one) => opened.shard.mail.broadcast({ broadcast: one, devices: [first], mail })),
  );
  expect(await opened.shard.dedupe.pruneBroadcasts([])).toBe(2);
  await Promise.all(
    many.map((one) => opened.shard.mail.broadcast({ broadcast: one, devices: [second], mail: roomy })),
  );
  expect(await opened.shard.dedupe.pruneBroadcasts([])).toBe(sweepRecordsMax);
  expect(await opened.shard.dedupe.pruneBroadcasts([])).toBe(1);
  const broadcast = generateUuid();
  await opened.shard.mail.broadcast({ broadcast, devices: [second], mail: roomy });
  const commits = opened.commits();
  expect(await opened.shard.dedupe.pruneBroadcasts([{ broadcast, after: first }])).toBe(0);
  expect(opened.commits()).toBe(commits);
});
