/** Contract of `Shard`: delayed mail. */

import { describe } from 'vitest';
import { formatUuid } from '../../../src/core/uuid.ts';
import { engines } from './engine.ts';
import { device, mailFor, NotingSink, payloadOf, second, storeTest } from './store.ts';

const farMs = 3_600_000;
/** Later than all that a test sends before. */
const soonMs = 3_000;

describe.concurrent.each(engines)('delayed mail on $name', (engine) => {
  const it = storeTest(engine, { delayedMailsPerDeviceMax: 4 });
  const textsOf = (ids: readonly Uint8Array[]): string[] => ids.map((id) => formatUuid(id));

  it('a mail that is delayed is in no mailbox until its time, and its receipt says when that is', async ({
    store,
    expect,
  }) => {
    await store.create(device);
    const deliverAtMs = Date.now() + farMs;
    const outcome = await store.shard.mail.enqueue(mailFor(device, { deliverAtMs }));
    expect(outcome).toMatchObject({ result: 'queued', mailboxSize: 0, repeated: false, isDelayed: true });
    const mailId = outcome.result === 'queued' ? outcome.mailId : Buffer.alloc(0);
    for (const isReopened of [false, true]) {
      if (isReopened) await store.reopen();
      expect(await store.shard.mail.head(device)).toEqual({ size: 0, mail: undefined });
      expect(await store.mailIds(device)).toEqual([]);
      expect(await store.shard.mail.receipt(device, mailId)).toMatchObject({
        name: 'note',
        state: 'delayed',
        deliverAtMs,
        queuedAtMs: undefined,
        expiresAtMs: undefined,
        settledAtMs: undefined,
      });
    }
    expect((await store.mailEvents(device)).map(({ event }) => event)).toEqual(['delayed']);
  });

  it('a time that is now or past is no delay', async ({ store, expect }) => {
    await store.create(device);
    for (const deliverAtMs of [0, Date.now() - farMs, Date.now() - 1]) {
      const outcome = await store.shard.mail.enqueue(mailFor(device, { deliverAtMs }));
      expect(outcome).toMatchObject({ result: 'queued', isDelayed: false });
    }
    expect(await store.shard.mail.size(device)).toBe(3);
  });

  it('at its time it is queued behind what waits, announced, and its life begins', async ({
    store,
    expect,
  }) => {
    await store.create(device);
    const sink = new NotingSink();
    await store.shard.streams.subscribe(device, sink);
    const deliverAtMs = Date.now() + soonMs;
    const payload = payloadOf({ n: 1 });
    const late = await store.send(device, { name: 'late', payload, deliverAtMs, ttlSeconds: 600 });
    const early = await store.send(device);
    await expect.poll(() => store.shard.mail.size(device)).toBe(2);
    expect(Date.now()).toBeGreaterThanOrEqual(deliverAtMs - 5);
    expect(await store.mailIds(device)).toEqual(textsOf([early, late]));
    const mail = (await store.shard.mail.list(device, '', 9)).items[1];
    expect(mail).toMatchObject({ name: 'late', requeueCount: 0, fetchCount: 0 });
    expect(mail?.payload.equals(payload)).toBe(true);
    const receipt = await store.shard.mail.receipt(device, late);
    expect(receipt).toMatchObject({ state: 'queued', queuedAtMs: mail?.acceptedAtMs });
    expect(mail?.acceptedAtMs).toBeGreaterThanOrEqual(deliverAtMs - 5);
    expect((mail?.expiresAtMs ?? 0) - (mail?.acceptedAtMs ?? 0)).toBe(600_000);
    await expect.poll(() => sink.announced).toHaveLength(2);
    expect(sink.announced[1]).toEqual({ mailId: formatUuid(late), name: 'late', mailboxSize: 2 });
    // From then on it is a mail as any other.
    await store.settle(device, late, 'requeue');
    expect(await store.settle(device, late, 'ack')).toEqual({ result: 'settled', mailboxSize: 1 });
    const events = (await store.mailEvents(device)).filter(({ mail_id }) => mail_id === formatUuid(late));
    expect(events.map(({ event }) => event)).toEqual(['delayed', 'queued', 'requeued', 'acked']);
  });

  it('it comes in the order of its times, and of one moment in the order that it was sent', async ({
    store,
    expect,
  }) => {
    await store.create(device, second);
    const deliverAtMs = Date.now() + soonMs;
    const ids: Uint8Array[] = [];
    for (const offMs of [1, 0, 0, 1]) {
      ids.push(await store.send(device, { deliverAtMs: deliverAtMs + offMs }));
      await store.send(second, { deliverAtMs });
    }
    for (const of of [device, second]) await expect.poll(() => store.shard.mail.size(of)).toBe(4);
    const [a, b, c, d] = ids as [Uint8Array, Uint8Array, Uint8Array, Uint8Array];
    expect(await store.mailIds(device)).toEqual(textsOf([b, c, a, d]));
  });

  it('mail whose time comes while the shard is closed is delivered soon after', async ({ store, expect }) => {
    await store.create(device);
    const deliverAtMs = Date.now() + 50;
    const mailId = await store.send(device, { deliverAtMs });
    await store.opened.close();
    while (Date.now() < deliverAtMs) await new Promise((resolve) => setTimeout(resolve, 10));
    await store.reopen();
    await expect.poll(() => store.stateOf(device, mailId)).toBe('queued');
    expect(await store.mailIds(device)).toEqual(textsOf([mailId]));
  });

  it('as many mails of a device wait as may, and one that is withdrawn or delivered makes room', async ({
    store,
    expect,
  }) => {
    await store.create(device, second);
    const [first] = await store.sendMany(device, 4, { deliverAtMs: Date.now() + farMs });
    const one = mailFor(device, { deliverAtMs: Date.now() + farMs });
    expect(await store.shard.mail.enqueue(one)).toEqual({ result: 'delayed_full' });
    expect(await store.shard.mail.enqueue({ ...one, device: second })).toMatchObject({ result: 'queued' });
    expect(await store.shard.mail.enqueue(mailFor(device))).toMatchObject({ result: 'queued' });
    await store.shard.mail.withdraw(device, first as Uint8Array);
    expect(await store.shard.mail.enqueue({ ...one, deliverAtMs: Date.now() + 100 })).toMatchObject({
      result: 'queued',
    });
    await expect.poll(() => store.shard.mail.size(device)).toBe(2);
    expect(await store.shard.mail.enqueue(one)).toMatchObject({ result: 'queued', isDelayed: true });
    expect(await store.shard.mail.enqueue(one)).toEqual({ result: 'delayed_full' });
    expect(await store.shard.mail.enqueue({ ...one, device: 'FLEET001NOBODY0001' as typeof device })).toEqual(
      {
        result: 'device_not_found',
      },
    );
  });

  it('D16: whether the mailbox is full is asked when the time has come; then the mail is a dead letter', async ({
    store,
    expect,
  }) => {
    await store.create(device);
    const [waiting] = await store.sendMany(device, 1);
    const deliverAtMs = Date.now() + soonMs;
    const ids = await store.sendMany(device, 3, { deliverAtMs, mailboxMailsMax: 2 });
    const [taken, ...refused] = ids as [Uint8Array, ...Uint8Array[]];
    for (const mailId of refused) {
      await expect.poll(() => store.stateOf(device, mailId)).toBe('mailbox_full');
      const letter = await store.shard.deadLetters.get(device, mailId);
      expect(letter).toMatchObject({ reason: 'mailbox_full', queuedAtMs: undefined, fetchCount: 0 });
      const receipt = await store.shard.mail.receipt(device, mailId);
      expect(receipt?.queuedAtMs).toBeUndefined();
      expect(receipt?.settledAtMs).toBeGreaterThanOrEqual(deliverAtMs - 5);
    }
    expect(await store.mailIds(device)).toEqual(textsOf([waiting as Uint8Array, taken]));
  });

  it('it is listed in the order of its times, by pages, with the number of all', async ({
    store,
    expect,
  }) => {
    await store.create(device, second);
    expect(await store.shard.mail.listDelayed(device, '', 9)).toEqual({ items: [], next: null, total: 0 });
    const deliverAtMs = Date.now() + farMs;
    const payload = payloadOf({ n: 1 });
    const last = await store.send(device, {
      name: 'last',
      payload,
      ttlSeconds: 60,
      deliverAtMs: deliverAtMs + 2,
    });
    const first = await store.send(device, { deliverAtMs });
    const [middle, withdrawn] = await store.sendMany(device, 2, { deliverAtMs: deliverAtMs + 1 });
    await store.send(second, { deliverAtMs });
    await store.shard.mail.withdraw(device, withdrawn as Uint8Array);
    for (const isReopened of [false, true]) {
      if (isReopened) await store.reopen();
      const page = await store.shard.mail.listDelayed(device, '', 2);
      expect(textsOf(page.items.map(({ id }) => id))).toEqual(textsOf([first, middle as Uint8Array]));
      expect(page.total).toBe(3);
      const rest = await store.shard.mail.listDelayed(device, page.next ?? '', 2);
      expect(rest).toMatchObject({ next: null, total: 3 });
      expect(rest.items).toHaveLength(1);
      expect(rest.items[0]).toMatchObject({ name: 'last', deliverAtMs: deliverAtMs + 2, ttlSeconds: 60 });
      expect(rest.items[0]?.id.equals(last)).toBe(true);
      expect(rest.items[0]?.payload.equals(payload)).toBe(true);
    }
  });

  it('a device that is deleted takes its delayed mail along', async ({ store, expect }) => {
    await store.create(device);
    const mailId = await store.send(device, { deliverAtMs: Date.now() + 200 });
    await store.shard.devices.delete(device);
    expect(await store.shard.mail.receipt(device, mailId)).toBeUndefined();
    await store.create(device, second);
    const later = await store.send(second, { deliverAtMs: Date.now() + 300 });
    await expect.poll(() => store.stateOf(second, later)).toBe('queued');
    expect(await store.shard.mail.size(device)).toBe(0);
  });
});
