/** Contract of `Shard`: receipts. */

import { describe, expect, it } from 'vitest';
import { generateUuid } from '../../../src/core/uuid.ts';
import { engines } from './engine.ts';
import { device, payloadOf, second, useStore } from './store.ts';

describe.each(engines)('receipts on $name', (engine) => {
  const store = useStore(engine);

  it('D17: a receipt tells of a mail from its sending to its end, with times, also after a restart', async () => {
    await store.create(device);
    const beforeMs = Date.now();
    const mailId = await store.send(device, { name: 'set-1', ttlSeconds: 600 });
    const [mail] = (await store.shard.mail.list(device, '', 1)).items;
    const queued = {
      device,
      name: 'set-1',
      state: 'queued',
      deliverAtMs: undefined,
      queuedAtMs: mail?.acceptedAtMs,
      expiresAtMs: mail?.expiresAtMs,
      fetchCount: 0,
      firstFetchedAtMs: undefined,
      requeueCount: 0,
      settledAtMs: undefined,
    };
    const receipt = await store.shard.mail.receipt(device, mailId);
    expect(receipt).toMatchObject(queued);
    expect(receipt?.mailId.equals(mailId)).toBe(true);
    await store.settle(device, mailId, 'requeue', { fetched: { count: 2, firstMs: 5_000 } });
    await store.settle(device, mailId, 'requeue');
    const requeued = { ...queued, fetchCount: 2, firstFetchedAtMs: 5_000, requeueCount: 2 };
    expect(await store.shard.mail.receipt(device, mailId)).toMatchObject(requeued);
    await store.settle(device, mailId, 'ack', { fetched: { count: 1, firstMs: 6_000 } });
    for (const isReopened of [false, true]) {
      if (isReopened) await store.reopen();
      const ended = await store.shard.mail.receipt(device, mailId);
      expect(ended).toMatchObject({
        ...requeued,
        state: 'acked',
        fetchCount: 3,
        expiresAtMs: undefined,
        settledAtMs: expect.any(Number),
      });
      expect(ended?.settledAtMs).toBeGreaterThanOrEqual(beforeMs - 5_000);
      expect(ended?.settledAtMs).toBeLessThanOrEqual(Date.now() + 5_000);
    }
  });

  it('D17: a mail that never was, or was for another device, has no receipt', async () => {
    await store.create(device, second);
    const mailId = await store.send(device);
    expect(await store.shard.mail.receipt(device, generateUuid())).toBeUndefined();
    expect(await store.shard.mail.receipt(second, mailId)).toBeUndefined();
    await store.settle(device, mailId, 'ack');
    expect(await store.shard.mail.receipt(second, mailId)).toBeUndefined();
  });

  it('the payload of one mail is read while it waits, requeued or delayed too, by its own device alone', async () => {
    await store.create(device, second);
    const sent = await store.sendMany(device, 3);
    const late = await store.send(device, {
      deliverAtMs: Date.now() + 600_000,
      payload: payloadOf({ late: 1 }),
    });
    const first = sent[0] as Uint8Array;
    await store.settle(device, first, 'requeue');
    const mail = await store.send(device, { payload: payloadOf({ own: 1 }) });
    const payload = (id: Uint8Array) => store.shard.mail.payload(device, id);
    const [waiting] = (await store.shard.mail.list(device, '', 10)).items.filter(({ id }) =>
      id.equals(first),
    );
    expect(await payload(first)).toEqual(waiting?.payload);
    expect((await payload(mail))?.toString()).toBe('{"own":1}');
    expect((await payload(late))?.toString()).toBe('{"late":1}');
    expect(await store.shard.mail.payload(second, mail)).toBeUndefined();
    await store.settle(device, mail, 'ack');
    expect(await payload(mail)).toBeUndefined();
  });

  it('D17: fetches that are told with the end count, and those that are told later, also with a repetition', async () => {
    await store.create(device);
    const mailId = await store.send(device);
    await store.settle(device, mailId, 'ack', { fetched: { count: 2, firstMs: 5_000 } });
    // The repetitions come from another front end, which had noted the fetches until then.
    await store.settle(device, mailId, 'ack', { fetched: { count: 4, firstMs: 6_000 } });
    await store.settle(device, mailId, 'reject', { fetched: { count: 1, firstMs: 7_000 } });
    const fetches = [
      { mailId, count: 3, firstMs: 4_000 },
      { mailId: generateUuid(), count: 1, firstMs: 1 },
    ];
    await store.shard.devices.noteActivity([{ device, lastSeenMs: 9_000, address: undefined, fetches }]);
    const told = { state: 'acked', fetchCount: 10, firstFetchedAtMs: 4_000 };
    expect(await store.shard.mail.receipt(device, mailId)).toMatchObject(told);
  });

  it('D17: receipts and dead letters of a device that is deleted stay; its waiting mail has none', async () => {
    await store.create(device);
    const [acked, rejected, waiting] = [
      await store.send(device),
      await store.send(device),
      await store.send(device),
    ];
    await store.settle(device, acked, 'ack');
    await store.settle(device, rejected, 'reject');
    await store.shard.devices.delete(device);
    expect(await store.stateOf(device, acked)).toBe('acked');
    expect(await store.stateOf(device, rejected)).toBe('rejected');
    expect(await store.stateOf(device, waiting)).toBeUndefined();
  });

  it('D17: receipts are kept for their time, counted from the end, and those of mail that waits stay', async () => {
    await store.create(device);
    const [acked, rejected, withdrawn, waiting] = [
      await store.send(device),
      await store.send(device),
      await store.send(device),
      await store.send(device),
    ];
    const delayed = await store.send(device, { deliverAtMs: Date.now() + 3_600_000 });
    await store.settle(device, acked, 'ack');
    await store.settle(device, rejected, 'reject');
    await store.shard.mail.withdraw(device, withdrawn);
    await store.reopen({ receiptRetentionSeconds: 0.001 });
    for (const mailId of [acked, rejected, withdrawn]) {
      await expect.poll(() => store.shard.mail.receipt(device, mailId)).toBeUndefined();
    }
    expect(await store.stateOf(device, waiting)).toBe('queued');
    expect(await store.stateOf(device, delayed)).toBe('delayed');
    // Letters have a time of their own; so has what the device itself is answered.
    expect(await store.letterIds()).toHaveLength(1);
    expect(await store.settle(device, acked, 'ack')).toEqual({ result: 'settled', mailboxSize: 1 });
    const forgotten = { result: 'not_found', mailboxSize: 1 };
    expect(await store.shard.mail.withdraw(device, withdrawn)).toEqual(forgotten);
  });
});
