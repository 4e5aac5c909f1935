/** Contract of `Shard`: mail that expires. */

import { describe } from 'vitest';
import { formatUuid } from '../../../src/core/uuid.ts';
import { engines } from './engine.ts';
import { device, storeTest } from './store.ts';

describe.concurrent.each(engines)('the life of mail on $name', (engine) => {
  const it = storeTest(engine);

  it('D16: a mail whose life is over goes by itself, to the dead letters, and the others stay', async ({
    store,
    expect,
  }) => {
    await store.create(device);
    const stays = await store.send(device);
    const head = await store.send(device, { ttlSeconds: 1 });
    const requeued = await store.send(device, { ttlSeconds: 1 });
    const last = await store.send(device);
    // A requeue gives it no more life.
    await store.settle(device, requeued, 'requeue');
    const { expiresAtMs = 0 } = (await store.shard.mail.receipt(device, requeued)) ?? {};
    await expect.poll(() => store.shard.mail.size(device)).toBe(2);
    expect(Date.now()).toBeGreaterThanOrEqual(expiresAtMs - 5);
    expect(await store.mailIds(device)).toEqual([stays, last].map((id) => formatUuid(id)));
    for (const mailId of [head, requeued]) {
      const receipt = await store.shard.mail.receipt(device, mailId);
      expect(receipt).toMatchObject({ state: 'expired' });
      expect(receipt?.settledAtMs).toBeGreaterThanOrEqual(expiresAtMs - 1_000);
      expect(await store.shard.deadLetters.get(device, mailId)).toMatchObject({ reason: 'expired' });
      // It is none of those that the device settled.
      expect(await store.settle(device, mailId, 'ack')).toEqual({ result: 'not_found', mailboxSize: 2 });
      const withdrawal = { result: 'already_settled', mailboxSize: 2 };
      expect(await store.shard.mail.withdraw(device, mailId)).toEqual(withdrawal);
    }
  });

  it('D16: a mail whose life ends while the shard is closed is gone soon after, and makes room', async ({
    store,
    expect,
  }) => {
    await store.create(device);
    const mailId = await store.send(device, { ttlSeconds: 1 });
    const { expiresAtMs = 0 } = (await store.shard.mail.receipt(device, mailId)) ?? {};
    await store.reopen();
    while (Date.now() < expiresAtMs) await new Promise((resolve) => setTimeout(resolve, 20));
    await expect.poll(() => store.shard.mail.size(device)).toBe(0);
    expect(await store.stateOf(device, mailId)).toBe('expired');
    await store.send(device, { mailboxMailsMax: 1 });
    expect(await store.shard.mail.size(device)).toBe(1);
  });

  it('D16: much mail whose life ends at once ends once each, oldest first', async ({ store, expect }) => {
    await store.create(device);
    const ids = await store.sendMany(device, 100, { ttlSeconds: 1 });
    await expect.poll(() => store.shard.mail.size(device)).toBe(0);
    const ended = (await store.mailEvents(device)).filter(({ event }) => event === 'expired');
    expect(ended.map(({ mail_id }) => mail_id)).toEqual(ids.map((id) => formatUuid(id)));
    expect(await store.letterIds()).toEqual(ids.map((id) => formatUuid(id)));
  });

  it('a mail that is acknowledged in time does not expire later', async ({ store, expect }) => {
    await store.create(device);
    const acked = await store.send(device, { ttlSeconds: 3 });
    const expires = await store.send(device, { ttlSeconds: 3 });
    await store.settle(device, acked, 'ack');
    await expect.poll(() => store.stateOf(device, expires)).toBe('expired');
    expect(await store.stateOf(device, acked)).toBe('acked');
    expect(await store.letterIds()).toEqual([formatUuid(expires)]);
  });
});
