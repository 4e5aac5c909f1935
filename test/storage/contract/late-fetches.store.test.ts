/** Contract of `Shard`: fetches that are written after their mail has ended. */

import { describe, expect, it } from 'vitest';

import { unavailable } from '../../../src/core/errors.ts';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { formatUuid } from '../../../src/core/uuid.ts';
import { ActivityNotes } from '../../../src/device-api/auth/activity.ts';
import { DeviceMarks } from '../../../src/domain/devices/device-marks.ts';
import type { Shard } from '../../../src/domain/shard.ts';
import { engines } from './engine.ts';
import { device, useStore } from './store.ts';

const ways = ['ack', 'reject', 'requeue', 'withdraw'] as const;
const firstMs = 1_700_000_000_000;

describe.each(engines)('fetches on $name', (engine) => {
  const store = useStore(engine);

  const end = async (
    mailId: Uint8Array,
    way: (typeof ways)[number],
    fetched?: { count: number; firstMs: number },
  ) =>
    way === 'withdraw'
      ? store.shard.mail.withdraw(device, mailId)
      : store.settle(device, mailId, way, fetched && { fetched });
  const note = (mailId: Uint8Array, count: number, by: Shard = store.shard) =>
    by.devices.noteActivity([
      {
        device,
        lastSeenMs: firstMs,
        address: undefined,
        fetches: [{ mailId: Buffer.from(mailId), count, firstMs }],
      },
    ]);

  it.each(ways)(
    'D13: they are in the receipt of a mail that ended by %s, whenever they are reported',
    async (way) => {
      await store.create(device);
      const before = await store.send(device, { requeuesMax: 0 });
      await note(before, 2);
      await end(before, way);
      const along = await store.send(device, { requeuesMax: 0 });
      await end(along, way, way === 'withdraw' ? undefined : { count: 1, firstMs });
      await note(along, way === 'withdraw' ? 2 : 1, store.elsewhere);
      const after = await store.send(device, { requeuesMax: 0 });
      // At once: which of the two comes first is for the engine to say.
      await Promise.all([end(after, way), note(after, 2, store.elsewhere)]);
      for (const mailId of [before, along, after]) {
        expect(await store.shard.mail.receipt(device, mailId)).toMatchObject({
          fetchCount: 2,
          firstFetchedAtMs: firstMs,
        });
      }
    },
  );

  it('D13: those that a shard could not take are reported later, and one that fails takes no other with it', async () => {
    await store.create(device);
    const mailId = await store.send(device, { requeuesMax: 0 });
    const errors = [unavailable('The disk is full.', 5), new Error('damaged')];
    const devices = {
      noteActivity: (...params: Parameters<Shard['devices']['noteActivity']>) => {
        const error = errors.shift();
        return error === undefined ? store.shard.devices.noteActivity(...params) : Promise.reject(error);
      },
    };
    const notes = new ActivityNotes({
      shards: { of: () => ({ devices }) as unknown as Shard },
      flushSeconds: 3_600,
      watched: new DeviceMarks(),
      log: createLog('silent'),
    });
    const known = { device, note: undefined };
    notes.fetched(known, formatUuid(mailId), mailId);
    notes.fetched({ device: 'FLEET001NOBODY0001' as typeof device, note: undefined }, 'x', Buffer.alloc(16));
    await notes.close();
    await end(mailId, 'requeue');
    await notes.close();
    expect(await store.shard.mail.receipt(device, mailId)).toMatchObject({ fetchCount: 1 });
  });
});
