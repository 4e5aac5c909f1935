import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import type { DeviceKey } from '../../src/core/identity.ts';
import { formatUuid, generateUuid, parseUuid } from '../../src/core/uuid.ts';
import type { Announcement, EnqueueOutcome } from '../../src/shard/shard.ts';
import { sweepRecordsMax } from '../../src/shard/write.ts';
import { type OpenShard, openShard } from '../harness/shard.ts';

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
  name: '',
  tags: [],
  createdAtMs: 0,
});

beforeEach(async () => {
  folders += 1;
  path = join(folder, String(folders));
  opened = openShard(path);
  await opened.shard.createDevices([created(device), created(other)]);
});
afterEach(() => opened.close());

const onceOf = (id: Uint8Array, rest: string): Uint8Array =>
  new Uint8Array(Buffer.concat([id, Buffer.from(rest)]));

function enqueue(once: Uint8Array, to = device, mailboxMailsMax = 1_000): Promise<EnqueueOutcome> {
  const payload = Buffer.from('{"n":1}');
  return opened.shard.enqueue({ device: to, name: 'note', payload, lifeSeconds: 60, mailboxMailsMax, once });
}

const mailIds = async (to = device): Promise<string[]> =>
  (await opened.shard.mails(to, '', 100)).items.map(({ id }) => formatUuid(id));

it('a mail that is sent once is queued and announced once, whatever becomes of it and of the server', async () => {
  const announced: Announcement[] = [];
  const sink = { announce: (one: Announcement) => announced.push(one), end: () => {}, recheck: () => {} };
  await opened.shard.subscribe(device, sink);
  const once = onceOf(generateUuid(), 'welcome:0');
  // Twice in one transaction, and again behind it.
  const [first, second] = await Promise.all([enqueue(once), enqueue(once)]);
  if (first.result !== 'queued') throw new Error(first.result);
  expect(first).toMatchObject({ mailboxSize: 1, repeated: false });
  expect(second).toEqual({ ...first, repeated: true });
  expect(await enqueue(once)).toEqual({ ...first, repeated: true });
  expect(announced).toHaveLength(1);
  expect(await mailIds()).toEqual([formatUuid(first.mailId)]);

  await opened.shard.settle({ device, mailId: first.mailId, verb: 'ack' });
  expect(await enqueue(once)).toEqual({ ...first, mailboxSize: 0, repeated: true });
  await opened.close();
  opened = openShard(path);
  expect(await enqueue(once)).toEqual({ ...first, mailboxSize: 0, repeated: true });
  await opened.shard.deleteDevice(device);
  expect(await enqueue(once)).toEqual({ ...first, mailboxSize: 0, repeated: true });
});

it('another record, place or device is another mail', async () => {
  const id = generateUuid();
  const sent = [
    await enqueue(onceOf(id, 'a')),
    await enqueue(onceOf(id, 'ab')),
    await enqueue(onceOf(id, 'a'), other),
    await enqueue(onceOf(generateUuid(), 'a')),
  ];
  for (const one of sent) expect(one).toMatchObject({ result: 'queued', repeated: false });
  expect([(await mailIds()).length, (await mailIds(other)).length]).toEqual([3, 1]);
});

it('a mail that is refused is not remembered, and a full mailbox does not refuse one that it has', async () => {
  const [first, second] = [onceOf(generateUuid(), 'a'), onceOf(generateUuid(), 'b')];
  expect(await enqueue(first, device, 1)).toMatchObject({ result: 'queued', repeated: false });
  expect(await enqueue(second, device, 1)).toEqual({ result: 'mailbox_full', mailboxSize: 1 });
  expect(await enqueue(first, device, 1)).toMatchObject({ result: 'queued', repeated: true });
  expect(await enqueue(second)).toMatchObject({ result: 'queued', repeated: false });
  const unknown = 'FLEET001DEVICE0003' as DeviceKey;
  expect(await enqueue(first, unknown)).toEqual({ result: 'device_not_found' });
  await opened.shard.createDevices([created(unknown)]);
  expect(await enqueue(first, unknown)).toMatchObject({ result: 'queued', repeated: false });
});

it('what was sent is forgotten up to a record, or all of it, and without a commit where there is nothing', async () => {
  const ids = Array.from({ length: 5 }, () => generateUuid());
  for (const id of ids) await Promise.all([enqueue(onceOf(id, 'a')), enqueue(onceOf(id, 'b'), other)]);
  expect(await opened.shard.forgetSent(ids[3])).toBe(6);
  const commits = opened.commits();
  expect(await opened.shard.forgetSent(ids[3])).toBe(0);
  expect(opened.commits()).toBe(commits);
  for (const [index, id] of ids.entries()) {
    expect(await enqueue(onceOf(id, 'a'))).toMatchObject({ repeated: index >= 3 });
  }
  const many = Array.from({ length: sweepRecordsMax }, () =>
    enqueue(onceOf(generateUuid(), 'x'), other, 65_535),
  );
  await Promise.all(many);
  const forgetting = opened.shard.forgetSent(undefined);
  const later = onceOf(generateUuid(), 'later');
  await enqueue(later);
  expect(await forgetting).toBe(sweepRecordsMax);
  // Sent behind it, whatever else there is to forget.
  expect(await enqueue(later)).toMatchObject({ repeated: true });
  expect(await opened.shard.forgetSent(undefined)).toBe(8);
  expect(await enqueue(onceOf(ids[4] as Buffer, 'a'))).toMatchObject({ repeated: false });
});

it('what is sent while others are forgotten is not forgotten with them', async () => {
  await enqueue(onceOf(generateUuid(), 'before'));
  const once = onceOf(generateUuid(), 'meanwhile');
  const [forgotten] = await Promise.all([opened.shard.forgetSent(undefined), enqueue(once)]);
  expect(forgotten).toBe(1);
  expect(await enqueue(once)).toMatchObject({ repeated: true });
});

it('a write of the same commit that fails takes nothing of it along', async () => {
  const once = onceOf(generateUuid(), 'a');
  const answers = await Promise.allSettled([enqueue(once), enqueue(once.subarray(0, 16)), enqueue(once)]);
  expect(answers).toMatchObject([
    { value: { result: 'queued', repeated: false, mailboxSize: 1 } },
    { reason: { code: 'internal_error' } },
    { value: { result: 'queued', repeated: true, mailboxSize: 1 } },
  ]);
  expect(await mailIds()).toHaveLength(1);
});

const purposes = 6;
const operation = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ type: fc.constant('send' as const), index: fc.nat({ max: purposes - 1 }) }),
  },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('ack' as const), index: fc.nat({ max: 9 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('forget' as const), index: fc.nat({ max: purposes }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constantFrom('delete' as const, 'create' as const),
      index: fc.constant(0),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('reopen' as const), index: fc.constant(0) }) },
);

it('any sequence of sending, acknowledging, forgetting, deleting and restarting agrees with the model', async () => {
  const mailsMax = 4;
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 30 }), async (operations) => {
      const ids = Array.from({ length: purposes }, () => generateUuid());
      const sent = new Map<number, string>();
      let mails: string[] | undefined = [];
      await opened.shard.deleteDevice(device);
      await opened.shard.createDevices([created(device)]);
      for (const { type, index } of operations) {
        if (type === 'send') {
          const outcome = await enqueue(onceOf(ids[index] as Buffer, 'x'), device, mailsMax);
          const before = sent.get(index);
          const mailboxSize = mails?.length ?? 0;
          if (before !== undefined) {
            const mailId = parseUuid(before);
            expect(outcome).toEqual({
              result: 'queued',
              mailId,
              mailboxSize,
              repeated: true,
              isDelayed: false,
            });
          } else if (mails === undefined) expect(outcome).toEqual({ result: 'device_not_found' });
          else if (mailboxSize === mailsMax) expect(outcome).toEqual({ result: 'mailbox_full', mailboxSize });
          else {
            expect(outcome).toMatchObject({
              result: 'queued',
              repeated: false,
              mailboxSize: mailboxSize + 1,
            });
            const id = outcome.result === 'queued' ? formatUuid(outcome.mailId) : '';
            sent.set(index, id);
            mails.push(id);
          }
        } else if (type === 'ack') {
          const [id] = mails?.splice(index % Math.max(mails.length, 1), 1) ?? [];
          const mailId = id === undefined ? undefined : parseUuid(id);
          if (mailId !== undefined) await opened.shard.settle({ device, mailId, verb: 'ack' });
        } else if (type === 'forget') {
          const gone = [...sent.keys()].filter((known) => known < index);
          expect(await opened.shard.forgetSent(ids[index])).toBe(gone.length);
          for (const known of gone) sent.delete(known);
          if (index === purposes) sent.clear();
        } else if (type === 'delete') {
          expect(await opened.shard.deleteDevice(device)).toBe(mails !== undefined);
          mails = undefined;
        } else if (type === 'create') {
          expect(await opened.shard.createDevices([created(device)])).toBe(mails && device);
          mails ??= [];
        } else {
          await opened.close();
          opened = openShard(path);
        }
        expect(await mailIds()).toEqual(mails ?? []);
      }
      await opened.shard.forgetSent(undefined);
    }),
    { numRuns: 40 },
  );
});
