/** Contract of `Shard`: last-seen times. */

import { describe, expect, it } from 'vitest';
import { formatUuid, generateUuid } from '../../../src/core/uuid.ts';
import type { Activity } from '../../../src/domain/devices/device.ts';
import { engines } from './engine.ts';
import { device, fleetId, namesake, second, useStore } from './store.ts';

describe.each(engines)('activity on $name', (engine) => {
  const store = useStore(engine);

  const seen = (lastSeenMs: number, more: Partial<Activity> = {}): Activity => ({
    device,
    lastSeenMs,
    address: undefined,
    fetches: [],
    ...more,
  });

  it('a device was last seen when it was told last, and from where as far as that was told', async () => {
    await store.create(device, second);
    const told = async () => {
      const status = await store.shard.devices.get(device);
      return [status?.lastSeenMs, status?.lastAddress && [...status.lastAddress]];
    };
    const ipv6 = Uint8Array.from({ length: 16 }, (_, index) => 200 + index);
    expect(await told()).toEqual([undefined, undefined]);
    await store.shard.devices.noteActivity([seen(5_000)]);
    expect(await told()).toEqual([5_000, undefined]);
    await store.shard.devices.noteActivity([seen(6_000, { address: Uint8Array.of(10, 0, 0, 255) })]);
    expect(await told()).toEqual([6_000, [10, 0, 0, 255]]);
    await store.shard.devices.noteActivity([seen(7_000)]);
    expect(await told()).toEqual([7_000, [10, 0, 0, 255]]);
    await store.shard.devices.noteActivity([seen(8_000), seen(9_000, { address: ipv6 })]);
    await store.reopen();
    expect(await told()).toEqual([9_000, [...ipv6]]);
    expect(await store.shard.devices.get(second)).toMatchObject({
      lastSeenMs: undefined,
      lastAddress: undefined,
    });
  });

  it('of a device that is not there nothing is kept', async () => {
    await store.shard.devices.noteActivity([]);
    await store.shard.devices.noteActivity([
      seen(5_000, { fetches: [{ mailId: generateUuid(), count: 1, firstMs: 1 }] }),
    ]);
    await store.create(device);
    expect(await store.shard.devices.get(device)).toMatchObject({ lastSeenMs: undefined });
    expect(await store.shard.devices.countStep('seen', { fleetId, seenAfterMs: 1 }, '', 10)).toMatchObject({
      count: 0,
    });
  });

  it('D13: fetches are added up, and the first is the earliest of those that were told', async () => {
    await store.create(device, second);
    const [mailId, other] = [await store.send(device), await store.send(second)];
    const told = async (of = device, id = mailId) => {
      const { fetchCount, firstFetchedAtMs } = (await store.shard.mail.receipt(of, id)) ?? {};
      return [fetchCount, firstFetchedAtMs];
    };
    const note = (count: number, firstMs: number, id = mailId) =>
      store.shard.devices.noteActivity([seen(9_000, { fetches: [{ mailId: id, count, firstMs }] })]);
    await note(2, 5_000);
    expect(await told()).toEqual([2, 5_000]);
    await note(1, 6_000);
    // Another front end saw it earlier, and tells of it later.
    await note(3, 4_000);
    expect(await told()).toEqual([6, 4_000]);
    await store.reopen();
    expect((await store.shard.mail.head(device)).mail).toMatchObject({
      fetchCount: 6,
      firstFetchedAtMs: 4_000,
    });
    await store.settle(device, mailId, 'requeue', { fetched: { count: 1, firstMs: 7_000 } });
    expect(await told()).toEqual([7, 4_000]);
    // A mail of another mailbox, and one that never was.
    await note(1, 1, other);
    await note(1, 1, generateUuid());
    expect(await told(second, other)).toEqual([0, undefined]);
  });

  it('D17: the first fetch that is told while a mail waits is a record, and no other', async () => {
    await store.create(device, namesake);
    const mailId = await store.send(device);
    for (const [count, firstMs] of [
      [2, 5_000],
      [1, 6_000],
    ] as const) {
      await store.shard.devices.noteActivity([seen(firstMs, { fetches: [{ mailId, count, firstMs }] })]);
    }
    await store.settle(device, mailId, 'ack');
    await store.shard.devices.noteActivity([
      seen(9_000, { fetches: [{ mailId, count: 1, firstMs: 8_000 }] }),
    ]);
    const of = {
      mail_id: formatUuid(mailId),
      requeue_count: 0,
      first_fetched_at: '1970-01-01T00:00:05.000Z',
    };
    expect(await store.mailEvents(device)).toEqual([
      { mail_id: of.mail_id, event: 'queued' },
      { ...of, event: 'fetched', fetch_count: 2 },
      { ...of, event: 'acked', fetch_count: 3 },
    ]);
    expect(await store.shard.mail.receipt(device, mailId)).toMatchObject({ fetchCount: 4 });
  });
});
