/** Contract of `Shard`: mail that takes the place of mail of its key (D31). */

import { describe } from 'vitest';
import { formatUuid } from '../../../src/core/uuid.ts';
import type { Enqueue } from '../../../src/domain/mail/mail.ts';
import { replaceableMailsMax } from '../../../src/domain/mail/replaceable-mails.ts';
import { engines } from './engine.ts';
import { device, mailFor, NotingSink, payloadOf, type Store, second, storeTest } from './store.ts';

const farMs = 3_600_000;
const replaceKey = 'set-point';
const textsOf = (ids: readonly Uint8Array[]): string[] => ids.map((id) => formatUuid(id));

describe.concurrent.each(engines)('replaced mail on $name', (engine) => {
  const it = storeTest(engine, { delayedMailsPerDeviceMax: 1 });
  const far = () => ({ deliverAtMs: Date.now() + farMs });
  const fetch = (store: Store, mailId: Uint8Array, to = device) =>
    store.shard.devices.noteActivity([
      {
        device: to,
        lastSeenMs: 1_000,
        address: undefined,
        fetches: [{ mailId: Buffer.from(mailId), count: 1, firstMs: 1_000 }],
      },
    ]);
  const delayedIds = async (store: Store) =>
    (await store.shard.mail.listDelayed(device, '', 9)).items.map(({ id }) => formatUuid(id));

  it('a mail takes the place of the one of its key that waits, in the order of the mailbox', async ({
    store,
    expect,
  }) => {
    await store.create(device, second);
    const before = await store.send(device);
    const old = await store.send(device, { replaceKey, name: 'old', payload: payloadOf({ n: 1 }) });
    const behind = await store.send(device);
    const others = [
      await store.send(device, { replaceKey: 'mode' }),
      await store.send(second, { replaceKey }),
    ] as const;
    const outcome = await store.shard.mail.enqueue(
      mailFor(device, { replaceKey, name: 'new', payload: payloadOf({ n: 2 }), ttlSeconds: 60 }),
    );
    expect(outcome).toMatchObject({ result: 'queued', mailboxSize: 4, repeated: false, isDelayed: false });
    const mailId = outcome.result === 'queued' ? outcome.mailId : Buffer.alloc(0);
    expect(await store.mailIds(device)).toEqual(textsOf([before, mailId, behind, others[0]]));
    expect(await store.mailIds(second)).toEqual(textsOf([others[1]]));
    const mail = (await store.shard.mail.list(device, '', 9)).items[1];
    expect(mail).toMatchObject({ name: 'new', payload: payloadOf({ n: 2 }), requeueCount: 0, fetchCount: 0 });
    expect((mail?.expiresAtMs ?? 0) - (mail?.acceptedAtMs ?? 0)).toBe(60_000);
    const receipt = await store.shard.mail.receipt(device, old);
    expect(receipt).toMatchObject({ state: 'replaced', name: 'old', fetchCount: 0, expiresAtMs: undefined });
    expect(receipt?.settledAtMs).toBe(mail?.acceptedAtMs);
    expect(await store.letterIds()).toEqual([]);
    // The device never had it in hand, so nothing is remembered of it.
    expect(await store.settle(device, old, 'ack')).toEqual({ result: 'not_found', mailboxSize: 4 });
    expect(await store.shard.mail.withdraw(device, old)).toMatchObject({ result: 'already_settled' });
    const events = (await store.mailEvents(device)).slice(4);
    const none = { requeue_count: 0, fetch_count: 0, first_fetched_at: null };
    expect(events).toEqual([
      { mail_id: formatUuid(old), event: 'replaced', ...none, new_mail_id: formatUuid(mailId) },
      { mail_id: formatUuid(mailId), event: 'queued' },
    ]);
  });

  it('at the head it is the head, is found by its id, and settled as any other', async ({
    store,
    expect,
  }) => {
    await store.create(device);
    const ids = await store.sendMany(device, 3, { replaceKey });
    const last = ids[2] as Uint8Array;
    expect(await store.shard.mail.head(device)).toMatchObject({ size: 1, mail: { id: Buffer.from(last) } });
    await store.reopen();
    const next = await store.send(device, { replaceKey });
    const behind = await store.send(device);
    expect(await store.mailIds(device)).toEqual(textsOf([next, behind]));
    for (const id of ids) expect(await store.stateOf(device, id)).toBe('replaced');
    expect(await store.settle(device, next, 'reject')).toEqual({ result: 'settled', mailboxSize: 1 });
    expect(await store.letterIds()).toEqual(textsOf([next]));
    expect(await store.mailIds(device)).toEqual(textsOf([behind]));
    // Its key is free again, and a replayed letter has none.
    const replay = { device, mailId: next, ttlSeconds: 60, mailboxMailsMax: 9 };
    expect(await store.shard.deadLetters.replay(replay)).toMatchObject({ result: 'queued', mailboxSize: 2 });
    await store.send(device, { replaceKey });
    expect(await store.shard.mail.size(device)).toBe(3);
  });

  it('one that was fetched, or requeued, stays, and the next one of its key comes behind', async ({
    store,
    expect,
  }) => {
    await store.create(device);
    const fetched = await store.send(device, { replaceKey });
    await fetch(store, fetched);
    const requeued = await store.send(device, { replaceKey });
    await store.settle(device, requeued, 'requeue');
    const waits = await store.send(device, { replaceKey });
    const last = await store.send(device, { replaceKey });
    expect(await store.mailIds(device)).toEqual(textsOf([fetched, requeued, last]));
    expect(await store.stateOf(device, waits)).toBe('replaced');
    // A fetch that comes too late is of the mail in its place.
    await fetch(store, waits);
    expect(await store.shard.mail.receipt(device, waits)).toMatchObject({ fetchCount: 0 });
    expect(await store.shard.mail.receipt(device, last)).toMatchObject({ fetchCount: 1 });
    const behind = await store.send(device, { replaceKey });
    expect(await store.mailIds(device)).toEqual(textsOf([fetched, requeued, last, behind]));
  });

  it('no full mailbox refuses one that takes a place, and each of the others', async ({ store, expect }) => {
    await store.create(device);
    const limit = { mailboxMailsMax: 2 };
    const [old] = [await store.send(device, { replaceKey }), await store.send(device)];
    const send = (more: Partial<Enqueue>) => store.shard.mail.enqueue(mailFor(device, { ...limit, ...more }));
    expect(await send({ replaceKey })).toMatchObject({ result: 'queued', mailboxSize: 2 });
    expect(await store.stateOf(device, old)).toBe('replaced');
    const full = { result: 'mailbox_full', mailboxSize: 2 };
    expect(await send({ replaceKey: 'mode' })).toEqual(full);
    const delayed = await store.send(device, { replaceKey: 'mode', ...far() });
    // It would have to leave the delayed mail for a place that is not there: then it stays.
    expect(await send({ replaceKey: 'mode' })).toEqual(full);
    expect(await delayedIds(store)).toEqual(textsOf([delayed]));
    expect(await send(far())).toEqual({ result: 'delayed_full' });
    expect(await send({ replaceKey, ...far() })).toEqual({ result: 'delayed_full' });
    expect(await send({ replaceKey: 'mode', ...far() })).toMatchObject({ result: 'queued', isDelayed: true });
    expect(await store.stateOf(device, delayed)).toBe('replaced');
    expect(await store.shard.mail.size(device)).toBe(2);
  });

  it('delayed mail waits too: it is replaced by what comes now, and replaces what waits in the mailbox', async ({
    store,
    expect,
  }) => {
    await store.create(device);
    const sink = new NotingSink();
    await store.shard.streams.subscribe(device, sink);
    const delayed = await store.send(device, { replaceKey, ...far() });
    const behind = await store.send(device);
    const now = await store.send(device, { replaceKey });
    expect([await store.stateOf(device, delayed), await delayedIds(store)]).toEqual(['replaced', []]);
    expect(await store.mailIds(device)).toEqual(textsOf([behind, now]));
    const later = await store.send(device, { replaceKey, ...far() });
    expect([await store.stateOf(device, now), await delayedIds(store)]).toEqual([
      'replaced',
      textsOf([later]),
    ]);
    expect(await store.mailIds(device)).toEqual(textsOf([behind]));
    expect((await store.shard.mail.receipt(device, delayed))?.queuedAtMs).toBeUndefined();
    await expect.poll(() => sink.announced).toHaveLength(2);
    expect(await store.shard.mail.withdraw(device, later)).toMatchObject({ result: 'withdrawn' });
  });

  it('delayed mail that was delivered is replaced where it stands', async ({ store, expect }) => {
    await store.create(device);
    const late = await store.send(device, { replaceKey, deliverAtMs: Date.now() + 500 });
    const before = await store.send(device);
    await expect.poll(() => store.shard.mail.size(device)).toBe(2);
    const behind = await store.send(device);
    const next = await store.send(device, { replaceKey });
    expect(await store.mailIds(device)).toEqual(textsOf([before, next, behind]));
    expect(await store.stateOf(device, late)).toBe('replaced');
    expect(await store.settle(device, next, 'ack')).toEqual({ result: 'settled', mailboxSize: 2 });
  });

  it('a mail that takes a place is not announced: the one before it was', async ({ store, expect }) => {
    await store.create(device);
    const sink = new NotingSink();
    await store.shard.streams.subscribe(device, sink);
    const first = await store.send(device, { replaceKey });
    await store.send(device, { replaceKey });
    const last = await store.send(device);
    await expect.poll(() => sink.announced).toHaveLength(2);
    expect(sink.announced.map(({ mailId }) => mailId)).toEqual(textsOf([first, last]));
  });

  it('what ends otherwise is replaced by nothing', async ({ store, expect }) => {
    await store.create(device);
    const acked = await store.send(device, { replaceKey });
    await store.settle(device, acked, 'ack');
    const withdrawn = await store.send(device, { replaceKey });
    await store.shard.mail.withdraw(device, withdrawn);
    const expired = await store.send(device, { replaceKey, ttlSeconds: 1 });
    await expect.poll(() => store.stateOf(device, expired)).toBe('expired');
    const delayed = await store.send(device, { replaceKey, ...far() });
    await store.shard.mail.withdraw(device, delayed);
    const last = await store.send(device, { replaceKey });
    expect(await store.mailIds(device)).toEqual(textsOf([last]));
    const states = [acked, withdrawn, expired, delayed].map((id) => store.stateOf(device, id));
    expect(await Promise.all(states)).toEqual(['acked', 'withdrawn', 'expired', 'withdrawn']);
  });

  it('a repetition replaces nothing', async ({ store, expect }) => {
    await store.create(device);
    const dedupeKey = Buffer.concat([await store.send(device, { replaceKey: 'other' }), Buffer.from('a')]);
    const first = mailFor(device, { replaceKey, dedupeKey });
    const sent = await store.shard.mail.enqueue(first);
    const newer = await store.send(device, { replaceKey });
    expect(await store.shard.mail.enqueue(first)).toMatchObject({ ...sent, mailboxSize: 2, repeated: true });
    expect((await store.mailIds(device))[1]).toBe(formatUuid(newer));
  });

  it('a broadcast replaces the mail of its key of each device', async ({ store, expect }) => {
    await store.create(device, second);
    const old = await store.send(device, { replaceKey });
    const { device: _, ...mail } = mailFor(device, { replaceKey, mailboxMailsMax: 1 });
    const broadcast = Buffer.from(old);
    const outcome = await store.shard.mail.broadcast({ broadcast, devices: [device, second], mail });
    expect(outcome).toEqual({ queued: 2, refused: [] });
    expect(await store.stateOf(device, old)).toBe('replaced');
    for (const one of [device, second]) expect(await store.shard.mail.size(one)).toBe(1);
  });

  it('of many of one key at once one is left, and each other one was replaced', async ({ store, expect }) => {
    await store.create(device);
    const ids = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        store.send(device, { replaceKey }, index % 2 ? store.shard : store.elsewhere),
      ),
    );
    const [left, ...others] = await store.mailIds(device);
    expect([others, textsOf(ids).includes(left ?? '')]).toEqual([[], true]);
    const states = await Promise.all(ids.map((id) => store.stateOf(device, id)));
    expect(states.filter((state) => state === 'replaced')).toHaveLength(39);
  });

  it('a fetch and a newer mail at once: what was fetched is never replaced', async ({ store, expect }) => {
    await store.create(device);
    for (let turn = 0; turn < 20; turn += 1) {
      const mailId = await store.send(device, { replaceKey });
      const newer = store.send(device, { replaceKey }, store.elsewhere);
      await Promise.all([fetch(store, mailId), newer]);
      const receipt = await store.shard.mail.receipt(device, mailId);
      expect(receipt?.state === 'replaced').toBe(receipt?.fetchCount === 0);
      const ofNewer = await store.shard.mail.receipt(device, await newer);
      expect(ofNewer?.fetchCount).toBe(receipt?.fetchCount === 0 ? 1 : 0);
      for (const id of [mailId, await newer]) await store.settle(device, id, 'ack');
    }
  });

  it('the last mails of a device are known by their keys, and one before them stays', async ({
    store,
    expect,
  }) => {
    await store.create(device);
    const keys = Array.from({ length: replaceableMailsMax + 1 }, (_, index) => `key_${index}`);
    const ids = await Promise.all(keys.map((key) => store.send(device, { replaceKey: key })));
    const waiting = await store.mailIds(device);
    const [first] = waiting;
    const firstKey = keys[ids.findIndex((id) => formatUuid(id) === first)] ?? '';
    await store.send(device, { replaceKey: firstKey });
    expect(await store.shard.mail.size(device)).toBe(keys.length + 1);
    expect((await store.mailIds(device))[0]).toBe(first);
  });

  it('a device that is deleted takes its keys along', async ({ store, expect }) => {
    await store.create(device);
    const old = await store.send(device, { replaceKey });
    await store.send(device, { replaceKey: 'mode', ...far() });
    expect(await store.shard.devices.delete(device)).toBe(true);
    await store.create(device);
    await store.send(device, { replaceKey });
    await store.send(device, { replaceKey: 'mode' });
    expect(await store.shard.mail.size(device)).toBe(2);
    expect(await store.stateOf(device, old)).toBeUndefined();
  });
});
