/** Contract of `Shard`: mailboxes whose head waits. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DeviceCounts } from '../../../src/admin-api/monitoring/device-counts.ts';
import { attentionToMailboxes } from '../../../src/admin-api/monitoring/stuck.ts';
import { yieldToEventLoop } from '../../../src/core/async.ts';
import { type DeviceKey, deviceIdOf, deviceKeyOf } from '../../../src/core/identity.ts';
import { formatUuid } from '../../../src/core/uuid.ts';
import type { CountStep, DeviceFilter, FoundDevices } from '../../../src/domain/devices/device-query.ts';
import { engines } from './engine.ts';
import { device, fleetId, namesake, newDevice, type Store, second, useStore } from './store.ts';

/** An engine may bring a head into its index a moment later. */
const soon = { timeout: 20_000, interval: 50 };

/** Ids of what waits since before a time, and the times, in the order of the index. */
async function waiting(
  store: Store,
  waitingBeforeMs: number,
  scanMax = 100,
  more: Partial<DeviceFilter> = {},
): Promise<[string, number][]> {
  const found: [string, number][] = [];
  const filter = { fleetId, waitingBeforeMs, ...more };
  let last = '';
  for (let after: string | undefined = ''; after !== undefined; ) {
    const step: FoundDevices = await store.shard.devices.find({ ...filter, by: 'waiting', after, scanMax });
    for (const { device, position, waitingSinceMs = 0 } of step.items) {
      expect(position > last).toBe(true);
      expect(position).toMatch(/^[\0-\xff]{16}$/);
      last = position;
      found.push([deviceIdOf(device), waitingSinceMs]);
    }
    after = step.reached;
  }
  return found;
}

async function countWaiting(store: Store, waitingBeforeMs: number, scanMax: number): Promise<number> {
  let count = 0;
  for (let after: string | undefined = ''; after !== undefined; ) {
    const filter = { fleetId, waitingBeforeMs };
    const step: CountStep = await store.shard.devices.countStep('waiting', filter, after, scanMax);
    count += step.count;
    after = step.reached;
  }
  return count;
}

const farMs = Date.now() + 3_600_000;
const sinceOf = async (store: Store, of: DeviceKey) =>
  (await store.shard.devices.get(of))?.waitingSinceMs ?? undefined;
/** Waits until the next millisecond, of the database too. */
const aMoment = () => new Promise((resolve) => setTimeout(resolve, 5));

describe.each(engines)('mailboxes that wait on $name', (engine) => {
  const store = useStore(engine);

  it('a mailbox waits since its head came there: not since it was accepted, and not for its other mails', async () => {
    await store.create(device);
    expect(await sinceOf(store, device)).toBeUndefined();
    const [first, next, last] = (await store.sendMany(device, 3)) as [Uint8Array, Uint8Array, Uint8Array];
    const sinceMs = await sinceOf(store, device);
    const { items } = await store.shard.mail.list(device, '', 3);
    expect(sinceMs).toBe(items[0]?.acceptedAtMs);
    await aMoment();
    await store.settle(device, last, 'ack');
    expect(await sinceOf(store, device)).toBe(sinceMs);
    await store.settle(device, first, 'ack');
    const nextMs = (await sinceOf(store, device)) ?? 0;
    expect(nextMs).toBeGreaterThan(sinceMs ?? Number.POSITIVE_INFINITY);
    await aMoment();
    await store.settle(device, next, 'requeue');
    expect(await sinceOf(store, device)).toBeGreaterThan(nextMs);
    await store.shard.mail.withdraw(device, next);
    expect(await sinceOf(store, device)).toBeUndefined();
    expect(await waiting(store, farMs)).toEqual([]);
  });

  it('delayed mail does not wait until it is due, and then from that moment', async () => {
    await store.create(device);
    await store.send(device, { deliverAtMs: Date.now() + 200 });
    expect(await waiting(store, farMs)).toEqual([]);
    const sentMs = Date.now();
    await expect.poll(() => waiting(store, farMs)).toHaveLength(1);
    expect(await sinceOf(store, device)).toBeGreaterThan(sentMs + 100);
  });

  it('what expires at the head lets the next one begin to wait', async () => {
    await store.create(device);
    await store.send(device, { ttlSeconds: 1 });
    await store.send(device);
    const sinceMs = (await sinceOf(store, device)) ?? Number.POSITIVE_INFINITY;
    await expect.poll(() => sinceOf(store, device)).toBeGreaterThan(sinceMs);
  });

  it('what waits since before a time is found in the order of the times, with other filters, and counted', async () => {
    const devices = Array.from({ length: 9 }, (_, n) => deviceKeyOf(fleetId, `DEVICE100${n}`));
    await store.shard.devices.create([
      ...devices.map((key, n) => newDevice(key, { tags: n % 2 ? ['odd'] : [], name: `n${n}` })),
      newDevice(namesake),
    ]);
    await store.send(namesake);
    const expected: [string, number][] = [];
    for (const key of [...devices.slice(3), ...devices.slice(0, 3)]) {
      await store.send(key);
      expected.push([deviceIdOf(key), (await sinceOf(store, key)) ?? 0]);
      await aMoment();
    }
    await expect.poll(() => waiting(store, farMs), soon).toHaveLength(9);
    for (const scanMax of [1, 2, 100]) {
      expect(await waiting(store, farMs, scanMax)).toEqual(expected);
      expect(await countWaiting(store, farMs, scanMax)).toBe(9);
    }
    const [, fifthMs = 0] = expected[4] ?? [];
    expect(await waiting(store, fifthMs)).toEqual(expected.slice(0, 4));
    expect(await waiting(store, fifthMs + 1)).toEqual(expected.slice(0, 5));
    expect(await countWaiting(store, fifthMs, 2)).toBe(4);
    const odd = expected.filter(([id]) => Number(id.slice(-1)) % 2);
    expect(await waiting(store, farMs, 2, { tags: ['odd'] })).toEqual(odd);
    expect(await waiting(store, farMs, 2, { idPrefix: 'DEVICE1003' })).toEqual(expected.slice(0, 1));
    const byTag = { fleetId, tags: ['odd'], waitingBeforeMs: fifthMs, by: 'tag' as const };
    const { items } = await store.shard.devices.find({ ...byTag, after: '', scanMax: 100 });
    const early = expected.slice(0, 4).map(([id]) => id);
    expect(items.map((one) => deviceIdOf(one.device))).toEqual(
      odd
        .map(([id]) => id)
        .filter((id) => early.includes(id))
        .sort(),
    );
    expect(await store.shard.devices.countEntries('waiting', { fleetId, waitingBeforeMs: fifthMs }, 3)).toBe(
      3,
    );
    // A forged position is the beginning, or some other place.
    const forged = { fleetId, waitingBeforeMs: farMs, by: 'waiting' as const, scanMax: 100 };
    for (const after of ['x', '\0', '\xff'.repeat(60)]) {
      expect((await store.shard.devices.find({ ...forged, after })).items.length).toBeLessThanOrEqual(9);
    }
  });

  it('a device that is deleted waits no more, nor when it comes again', async () => {
    await store.create(device, second);
    await store.sendMany(device, 3);
    await store.send(second);
    await expect.poll(() => waiting(store, farMs), soon).toHaveLength(2);
    await store.shard.devices.delete(device);
    expect(await countWaiting(store, farMs, 10)).toBe(1);
    expect((await waiting(store, farMs)).map(([id]) => id)).toEqual([deviceIdOf(second)]);
    await store.create(device);
    expect(await sinceOf(store, device)).toBeUndefined();
    await store.send(device);
    await expect.poll(() => waiting(store, farMs), soon).toHaveLength(2);
  });

  it('a head that goes after it came into the index leaves it, and the next one comes', async () => {
    await store.create(device);
    const [first, next] = (await store.sendMany(device, 2)) as [Uint8Array, Uint8Array];
    await expect.poll(() => countWaiting(store, farMs, 10), soon).toBe(1);
    await store.settle(device, first, 'ack');
    const sinceMs = (await sinceOf(store, device)) ?? 0;
    await expect.poll(() => waiting(store, farMs), soon).toEqual([[deviceIdOf(device), sinceMs]]);
    await store.reopen();
    expect(await waiting(store, farMs)).toEqual([[deviceIdOf(device), sinceMs]]);
    await store.settle(device, next, 'reject');
    expect(await countWaiting(store, farMs, 10)).toBe(0);
  });

  const operation = fc.record({
    type: fc.constantFrom('send', 'send', 'send', 'ack', 'ack', 'reject', 'requeue', 'withdraw', 'delete'),
    which: fc.nat({ max: 2 }),
    index: fc.nat({ max: 5 }),
  });

  it('any sequence: a mailbox waits anew when another mail comes to its head and never else, over a restart too', async () => {
    let made = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(operation, { minLength: 1, maxLength: 40 }),
        fc.boolean(),
        async (operations, isReopened) => {
          made += 1;
          const devices = [0, 1, 2].map((n) => deviceKeyOf(fleetId, `M${made}D${n}`.padStart(10, '0')));
          await store.create(...devices);
          const mailboxes: string[][] = [[], [], []];
          const times = new Map<DeviceKey, number | undefined>();
          for (const { type, which, index } of operations) {
            const [key, mails] = [devices[which], mailboxes[which]] as [DeviceKey, string[]];
            const before = mails[0];
            const id = mails[index % Math.max(mails.length, 1)];
            const bytes = id === undefined ? undefined : Buffer.from(id.replaceAll('-', ''), 'hex');
            const startMs = Date.now();
            let isHeadTaken = false;
            if (type === 'send') mails.push(formatUuid(await store.send(key)));
            else if (type === 'delete') {
              await store.shard.devices.delete(key);
              await store.create(key);
              mails.length = 0;
            } else if (bytes !== undefined && id !== undefined) {
              isHeadTaken = id === before;
              mails.splice(mails.indexOf(id), 1);
              if (type === 'withdraw') await store.shard.mail.withdraw(key, bytes);
              else await store.settle(key, bytes, type as 'ack');
              if (type === 'requeue') mails.push(id);
            }
            const sinceMs = await sinceOf(store, key);
            if (mails.length === 0) expect(sinceMs).toBeUndefined();
            else if (mails[0] === before && !isHeadTaken) expect(sinceMs).toBe(times.get(key));
            else {
              expect(sinceMs).toBeGreaterThan(startMs - 50);
              expect(sinceMs).toBeLessThan(Date.now() + 50);
            }
            times.set(key, sinceMs);
          }
          if (isReopened) await store.reopen();
          const own = devices.map(deviceIdOf);
          const found = async () => (await waiting(store, farMs, 3)).filter(([id]) => own.includes(id));
          const expected = devices.flatMap((key): [string, number][] => {
            const sinceMs = times.get(key);
            return sinceMs === undefined ? [] : [[deviceIdOf(key), sinceMs]];
          });
          await expect
            .poll(found, soon)
            .toEqual(expected.sort(([a, aMs], [b, bMs]) => aMs - bMs || (a < b ? -1 : 1)));
          for (const key of devices) await store.shard.devices.delete(key);
          expect(await countWaiting(store, farMs, 3)).toBe(0);
        },
      ),
      { numRuns: 12, endOnFailure: true },
    );
  });

  it('an operator is told of few by name, of many the number, and of a device that fetches in vain before that', async () => {
    const devices = ['A', 'B', 'C', 'D'].map((letter) => deviceKeyOf(fleetId, letter.repeat(10)));
    const [first, ...others] = devices as [DeviceKey, ...DeviceKey[]];
    await store.shard.devices.create(devices.map((one) => ({ ...newDevice(one), name: 'Pump\u202e' })));
    const all = [store.shard];
    const told = (afterSeconds: number) =>
      attentionToMailboxes(
        { of: () => store.shard, all },
        new DeviceCounts(all),
        { fleetId, stuckSeconds: 600, activeMs: 5_400_000, nowMs: Date.now() + afterSeconds * 1_000 },
        yieldToEventLoop,
      );
    expect(await told(3_600)).toEqual([]);
    const [mailId = Buffer.alloc(16)] = await store.sendMany(first, 1);
    const waits = { kind: 'offline_mailboxes', name: null, device_id: 'AAAAAAAAAA', count: 1 };
    await expect.poll(() => told(3_605), soon).toMatchObject([waits]);
    const sentence = (await told(3_605))[0]?.sentence;
    expect(sentence).toMatch(
      /^AAAAAAAAAA \(Pump\ufffd\) has had \S+ at the head of its mailbox for 1 h: never fetched, the device has never called\.$/,
    );
    const nowMs = Date.now();
    const fetches = [{ mailId, count: 5, firstMs: nowMs }];
    await store.shard.devices.noteActivity([
      { device: first, lastSeenMs: nowMs, address: undefined, fetches },
    ]);
    const vain = { kind: 'never_answers', name: null, device_id: 'AAAAAAAAAA', count: null };
    await expect.poll(() => told(90), soon).toMatchObject([vain]);
    const [early] = await told(185);
    expect(early?.sentence).toMatch(
      / fetches \S+ again and again \(5 times, first 3 min ago\) and never answers\.$/,
    );
    expect((await told(7_205)).map((item) => item.sentence)).toEqual([
      expect.stringMatching(/ for 2 h: fetched 5 times, never answered\.$/),
    ]);
    await aMoment();
    for (const one of others) await store.sendMany(one, 1);
    // One of them has called within the hour and a half.
    const many = { name: null, device_id: null };
    await expect
      .poll(() => told(3_605), soon)
      .toMatchObject([
        { ...many, kind: 'stuck_mailboxes', count: 1 },
        { ...many, kind: 'offline_mailboxes', count: 3 },
      ]);
    const [calling, offline] = await told(3_605);
    expect(calling?.sentence).toMatch(
      /^1 device that calls has not taken .* more than 10 min; the longest is A{10} .* for 1 h: fetched 5 times, never answered\.$/,
    );
    expect(offline?.sentence).toMatch(
      /^3 mailboxes of devices that do not call have had .* more than 10 min\.$/,
    );
    expect(await told(30)).toEqual([]);
  });
});
