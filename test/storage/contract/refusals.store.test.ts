/** Contract of `Shard`: refusals by a shard that is full or closed. */

import { describe, expect, it } from 'vitest';
import { generateUuid } from '../../../src/core/uuid.ts';
import type { Shard } from '../../../src/domain/shard.ts';
import { engines } from './engine.ts';
import { device, digestOf, mailFor, newDevice, useStore } from './store.ts';

const payload = Buffer.from('{}');
const record = { device, kind: 'datapoint' as const, schema: 'reading', payload };
const activity = { device, lastSeenMs: 5_000, address: undefined, fetches: [] };

/** Every write of a shard, but those that need not write where there is nothing to forget. */
function writesOf(shard: Shard): (() => Promise<unknown>)[] {
  const mailId = generateUuid();
  const { device: _, ...mail } = mailFor(device);
  return [
    () => shard.log.append(record),
    () => shard.mail.settle({ device, mailId, verb: 'ack' }),
    () => shard.mail.enqueue(mailFor(device)),
    () => shard.mail.withdraw(device, mailId),
    () => shard.deadLetters.replay({ device, mailId, ttlSeconds: 60, mailboxMailsMax: 9 }),
    () => shard.deadLetters.drop(device, mailId),
    () => shard.mail.broadcast({ broadcast: mailId, devices: [device], mail }),
    () => shard.devices.create([newDevice(device)]),
    () => shard.devices.change(device, { name: 'other' }),
    () => shard.devices.changeMany([device], { name: 'other' }),
    () => shard.devices.put([{ device: newDevice(device), change: undefined }]),
    () => shard.devices.delete(device),
    () => shard.devices.noteActivity([activity]),
  ];
}

describe.each(engines)('refusals on $name', (engine) => {
  const store = useStore(engine, {
    shardQueueMax: 4,
    shardQueueBytesMax: 100_000,
    // A sweep is a write too.
    sweepMilliseconds: 600_000,
  });

  /** Reason for which a write was refused; fails for a write that was taken. */
  const refusalOf = (write: Promise<unknown>): Promise<unknown> =>
    write.then(
      (answer) => `answered: ${JSON.stringify(answer)}`,
      (error: { code?: string }) => error.code,
    );

  it('a shard that is closed has done what it was given before, and refuses every write', async () => {
    const { shard } = store;
    await store.create(device);
    const before = shard.log.append(record);
    await store.opened.close();
    await expect(before).resolves.toBe('stored');
    for (const write of writesOf(shard)) expect(await refusalOf(write()), String(write)).toBe('unavailable');
    await store.reopen();
    expect(await store.records()).toHaveLength(1);
    expect(await store.shard.devices.get(device)).toMatchObject({ name: '', mailboxSize: 0 });
  });

  it('writes beyond those that may wait are refused and leave nothing; those in front of them are taken', async () => {
    const keys = Array.from({ length: 50 }, () => ({ key: generateUuid(), digest: digestOf(1) }));
    const outcomes = await Promise.allSettled(
      keys.map((idempotency) => store.shard.log.append({ ...record, idempotency })),
    );
    const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    expect(outcomes[0]).toEqual({ status: 'fulfilled', value: 'stored' });
    expect(refused.length).toBeGreaterThan(0);
    for (const error of refused) expect(error).toMatchObject({ code: 'unavailable' });
    await expect.poll(() => store.shard.accepts()).toBe(true);
    expect(await store.records()).toHaveLength(keys.length - refused.length);
    for (const [index, idempotency] of keys.entries()) {
      const expected = outcomes[index]?.status === 'fulfilled' ? 'replayed' : 'stored';
      expect(await store.shard.log.append({ ...record, idempotency })).toBe(expected);
    }
    expect(await store.records()).toHaveLength(keys.length);
  });

  it('a shard says whether it would take a write, by how many wait and by their bytes', async () => {
    await store.create(device);
    const large = Buffer.alloc(60_000, 'x');
    for (const given of [Array.from({ length: 4 }, () => payload), [large, large]]) {
      expect(store.shard.accepts()).toBe(true);
      const waiting = given.map((bytes) => store.shard.log.append({ ...record, payload: bytes }));
      expect(store.shard.accepts()).toBe(false);
      expect(await refusalOf(store.shard.mail.enqueue(mailFor(device)))).toBe('unavailable');
      // Notes of activity are kept in memory until they are taken: overload is no reason to lose them.
      await store.shard.devices.noteActivity([activity]);
      await Promise.all(waiting);
      await expect.poll(() => store.shard.accepts()).toBe(true);
    }
    expect(await store.shard.devices.get(device)).toMatchObject({ lastSeenMs: 5_000, mailboxSize: 0 });
  });
});
