import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import type { DeviceKey } from '../../../../src/core/identity.ts';
import { generateUuid } from '../../../../src/core/uuid.ts';
import { undescribed } from '../../../../src/domain/devices/device-fields.ts';
import type { EnqueueOutcome } from '../../../../src/domain/mail/mail.ts';
import { sweepRecordsMax } from '../../../../src/domain/write.ts';
import { type OpenShard, openShard } from '../../../harness/storage/shard.ts';

const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

const device = 'FLEET001DEVICE0001' as DeviceKey;
const other = 'FLEET001DEVICE0002' as DeviceKey;
let opened: OpenShard;
let folders = 0;
let path: string;

const created = (key: DeviceKey) => ({
  device: key,
  enabled: true,
  secretDigests: [Buffer.alloc(32)],
  ...undescribed,
  createdAtMs: 0,
});

beforeEach(async () => {
  folders += 1;
  path = join(folder, String(folders));
  opened = openShard(path);
  await opened.shard.devices.create([created(device), created(other)]);
});
afterEach(() => opened.close());

const onceOf = (id: Uint8Array, rest: string): Uint8Array =>
  new Uint8Array(Buffer.concat([id, Buffer.from(rest)]));

function enqueue(once: Uint8Array, to = device, mailboxMailsMax = 1_000): Promise<EnqueueOutcome> {
  const payload = Buffer.from('{"n":1}');
  return opened.shard.mail.enqueue({
    device: to,
    name: 'note',
    payload,
    ttlSeconds: 60,
    mailboxMailsMax,
    dedupeKey: once,
  });
}

it('what was sent is forgotten step by step, and without a commit where there is nothing', async () => {
  const ids = Array.from({ length: 5 }, () => generateUuid());
  for (const id of ids) await Promise.all([enqueue(onceOf(id, 'a')), enqueue(onceOf(id, 'b'), other)]);
  expect(await opened.shard.dedupe.prune(ids[3])).toBe(6);
  const commits = opened.commits();
  expect(await opened.shard.dedupe.prune(ids[3])).toBe(0);
  expect(opened.commits()).toBe(commits);
  const many = Array.from({ length: sweepRecordsMax }, () =>
    enqueue(onceOf(generateUuid(), 'x'), other, 65_535),
  );
  await Promise.all(many);
  const forgetting = opened.shard.dedupe.prune(undefined);
  const later = onceOf(generateUuid(), 'later');
  await enqueue(later);
  expect(await forgetting).toBe(sweepRecordsMax);
  // Sent behind it, whatever else there is to forget.
  expect(await enqueue(later)).toMatchObject({ repeated: true });
  expect(await opened.shard.dedupe.prune(undefined)).toBe(5);
});

it('a write of the same commit that fails takes nothing of it along', async () => {
  const once = onceOf(generateUuid(), 'a');
  const answers = await Promise.allSettled([enqueue(once), enqueue(once.subarray(0, 16)), enqueue(once)]);
  expect(answers).toMatchObject([
    { value: { result: 'queued', repeated: false, mailboxSize: 1 } },
    { reason: { code: 'internal_error' } },
    { value: { result: 'queued', repeated: true, mailboxSize: 1 } },
  ]);
  expect(await opened.shard.mail.size(device)).toBe(1);
});
