/** Contract of `Shard`: dead letters. */

import { describe, expect, it } from 'vitest';
import { formatUuid, generateUuid, parseUuid } from '../../../src/core/uuid.ts';
import type { DeadLetterFilter, LetterOrder } from '../../../src/domain/mail/ended-mail.ts';
import type { Enqueue } from '../../../src/domain/mail/mail.ts';
import { engines } from './engine.ts';
import { device, fleetId, NotingSink, namesake, otherFleetId, payloadOf, second, useStore } from './store.ts';

const patience = { timeout: 120_000 };

describe.each(engines)('dead letters on $name', (engine) => {
  const store = useStore(engine);

  /** A mail that is rejected at once. Answers its id. */
  async function kill(of = device, more: Partial<Enqueue> = {}): Promise<Uint8Array> {
    const mailId = await store.send(of, more);
    await store.settle(of, mailId, 'reject');
    return mailId;
  }

  /** Page by page. */
  async function find(filter: DeadLetterFilter, limit = 2, order?: LetterOrder): Promise<string[]> {
    const found: string[] = [];
    for (let after: string | null = ''; after !== null; ) {
      const page = await store.shard.deadLetters.list(fleetId, filter, after, limit, order);
      expect(page.items.length).toBeLessThanOrEqual(limit);
      found.push(...page.items.map(({ mailId }) => formatUuid(mailId)));
      after = page.next;
    }
    return found;
  }

  it('D16: what is rejected or requeued too often is a dead letter with all that it was; what is done, none', async () => {
    await store.create(device);
    const payload = Buffer.from('{ "a":1.50 }');
    const beforeMs = Date.now();
    const rejected = await store.send(device, { name: 'one', payload });
    const receipt = await store.shard.mail.receipt(device, rejected);
    await store.settle(device, rejected, 'requeue');
    await store.settle(device, rejected, 'reject', { fetched: { count: 3, firstMs: 5_000 } });
    const over = await store.send(device, { requeuesMax: 0 });
    await store.settle(device, over, 'requeue');
    await store.settle(device, await store.send(device), 'ack');
    for (const isReopened of [false, true]) {
      if (isReopened) await store.reopen();
      const { items, next } = await store.shard.deadLetters.list(fleetId, {}, '', 10);
      expect(next).toBeNull();
      expect(items).toMatchObject([
        {
          device,
          name: 'one',
          reason: 'rejected',
          queuedAtMs: receipt?.queuedAtMs,
          fetchCount: 3,
          requeueCount: 1,
          payloadBytes: payload.length,
        },
        { device, name: 'note', reason: 'over_requeued', fetchCount: 0, requeueCount: 0, payloadBytes: 2 },
      ]);
      expect(items.map(({ mailId }) => formatUuid(mailId))).toEqual(
        [rejected, over].map((id) => formatUuid(id)),
      );
      const letter = await store.shard.deadLetters.get(device, rejected);
      expect(letter).toMatchObject({ ...items[0] });
      expect(letter?.payload.equals(payload)).toBe(true);
      expect(letter?.diedAtMs).toBeGreaterThanOrEqual(beforeMs - 5_000);
      expect(letter?.diedAtMs).toBe((await store.shard.mail.receipt(device, rejected))?.settledAtMs);
    }
    expect(await store.shard.deadLetters.get(device, generateUuid())).toBeUndefined();
    expect(await store.shard.deadLetters.get(second, rejected)).toBeUndefined();
  });

  it('they are listed by fleet in order of mail id, and found by device, name, reason and time', async () => {
    await store.create(device, second, namesake);
    const ids: string[] = [];
    for (let count = 0; count < 6; count += 1) {
      const of = count % 2 === 0 ? device : second;
      const more = { name: count < 3 ? 'low' : 'high', requeuesMax: 0 };
      const mailId = await store.send(of, more);
      await store.settle(of, mailId, count % 3 === 0 ? 'requeue' : 'reject');
      ids.push(formatUuid(mailId));
      // Each at a time of its own.
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await kill(namesake);
    const at = (...indexes: number[]) => indexes.map((index) => ids[index]);
    // Mails of two devices that were sent in one moment may have their ids in either order.
    expect(await find({})).toEqual([...ids].sort());
    expect(await find({}, 100)).toEqual([...ids].sort());
    expect((await find({ device })).sort()).toEqual(at(0, 2, 4).sort());
    expect((await find({ name: 'high' }, 1)).sort()).toEqual(at(3, 4, 5).sort());
    expect((await find({ reasons: ['over_requeued'] })).sort()).toEqual(at(0, 3).sort());
    expect((await find({ device: second, name: 'high', reasons: ['rejected'] })).sort()).toEqual(at(5));
    expect(await find({ reasons: ['expired'] })).toEqual([]);
    expect((await find({ reasons: ['rejected', 'over_requeued'] })).sort()).toEqual((await find({})).sort());
    expect(await find({ device: namesake })).toEqual([]);
    const { items } = await store.shard.deadLetters.list(fleetId, {}, '', 100);
    const died = items.map(({ diedAtMs }) => diedAtMs).sort((a, b) => a - b);
    const [fromMs = 0, toMs = 0] = [died[2], died[4]];
    const between = items.filter(({ diedAtMs }) => diedAtMs >= fromMs && diedAtMs < toMs);
    expect(await find({ fromMs, toMs })).toEqual(between.map(({ mailId }) => formatUuid(mailId)));
    expect(await store.letterIds(otherFleetId)).toHaveLength(1);
  });

  it('they are listed from either end, also behind one that has gone', async () => {
    await store.create(device, namesake);
    await kill(namesake);
    const ids: string[] = [];
    while (ids.length < 5) ids.push(formatUuid(await kill()));
    expect(await find({}, 2)).toEqual(ids);
    expect(await find({}, 2, 'newest')).toEqual(ids.toReversed());
    expect(await find({ reasons: ['rejected'] }, 9, 'newest')).toEqual(ids.toReversed());
    const { next } = await store.shard.deadLetters.list(fleetId, {}, '', 2, 'newest');
    await store.shard.deadLetters.drop(device, parseUuid(ids[3] ?? '') as Buffer);
    const rest = await store.shard.deadLetters.list(fleetId, {}, next ?? '', 9, 'newest');
    expect(rest.items.map(({ mailId }) => formatUuid(mailId))).toEqual(ids.slice(0, 3).toReversed());
  });

  it('a cursor is the mail id and the device of a letter in hexadecimal digits, whether it is there or not', async () => {
    await store.create(device);
    const ids: Uint8Array[] = [];
    while (ids.length < 4) ids.push(await kill());
    const page = await store.shard.deadLetters.list(fleetId, {}, '', 2);
    const cursor = Buffer.concat([ids[1] as Uint8Array, Buffer.from(device, 'latin1')]).toString('hex');
    expect(page.next).toBe(cursor);
    await store.shard.deadLetters.drop(device, ids[1] as Uint8Array);
    const rest = await store.shard.deadLetters.list(fleetId, {}, cursor, 9);
    expect(rest.items.map(({ mailId }) => formatUuid(mailId))).toEqual(
      ids.slice(2).map((id) => formatUuid(id)),
    );
    expect(rest.next).toBeNull();
  });

  it('a letter that is replayed is a new mail with the same content, and a letter no more', async () => {
    await store.create(device);
    const sink = new NotingSink();
    const payload = payloadOf({ n: 1 });
    const mailId = await store.send(device, { name: 'one', payload, requeuesMax: 1 });
    for (const verb of ['requeue', 'requeue'] as const) {
      await store.settle(device, mailId, verb, { fetched: { count: 1, firstMs: 5_000 } });
    }
    await store.send(device);
    await store.shard.streams.subscribe(device, sink);
    const replay = { device, mailId, ttlSeconds: 60, mailboxMailsMax: 9 };
    const outcome = await store.shard.deadLetters.replay(replay);
    expect(outcome).toMatchObject({ result: 'queued', mailboxSize: 2, repeated: false, isDelayed: false });
    const newId = outcome.result === 'queued' ? outcome.mailId : Buffer.alloc(16);
    expect(formatUuid(newId)).not.toBe(formatUuid(mailId));
    const { items } = await store.shard.mail.list(device, '', 9);
    expect(items[1]).toMatchObject({ name: 'one', requeueCount: 0, requeuesMax: 1, fetchCount: 0 });
    expect(items[1]?.payload.equals(payload)).toBe(true);
    expect((items[1]?.expiresAtMs ?? 0) - (items[1]?.acceptedAtMs ?? 0)).toBe(60_000);
    await expect.poll(() => sink.announced).toMatchObject([{ mailId: formatUuid(newId), mailboxSize: 2 }]);
    expect(await store.letterIds()).toEqual([]);
    expect(await store.shard.deadLetters.replay(replay)).toEqual({ result: 'mail_not_found' });
    // Each has a receipt of its own.
    expect(await store.stateOf(device, mailId)).toBe('over_requeued');
    expect(await store.stateOf(device, newId)).toBe('queued');
  });

  it('a letter that cannot be replayed stays', async () => {
    await store.create(device);
    const mailId = await kill();
    await store.send(device);
    const replay = { device, mailId, ttlSeconds: 60, mailboxMailsMax: 1 };
    expect(await store.shard.deadLetters.replay(replay)).toEqual({ result: 'mailbox_full', mailboxSize: 1 });
    expect(await store.letterIds()).toEqual([formatUuid(mailId)]);
    expect(await store.shard.deadLetters.replay({ ...replay, device: second })).toEqual({
      result: 'mail_not_found',
    });
    expect(await store.shard.deadLetters.replay({ ...replay, mailboxMailsMax: 2 })).toMatchObject({
      result: 'queued',
    });
  });

  it('of those who replay or drop a letter at once one does', async () => {
    await store.create(device);
    for (let round = 0; round < 6; round += 1) {
      const mailId = await kill();
      await expect.poll(() => store.elsewhere.deadLetters.get(device, mailId)).toBeDefined();
      const replay = { device, mailId, ttlSeconds: 60, mailboxMailsMax: 100 };
      const [replayed, dropped, again] = await Promise.all([
        store.shard.deadLetters.replay(replay),
        store.elsewhere.deadLetters.drop(device, mailId),
        store.elsewhere.deadLetters.replay(replay),
      ]);
      const done = [replayed.result === 'queued', dropped, again.result === 'queued'];
      expect(done.filter((one) => one)).toHaveLength(1);
    }
    await expect.poll(() => store.letterIds()).toEqual([]);
  });

  it('a letter that is dropped is gone, its receipt is not', async () => {
    await store.create(device, second);
    const [mailId, other] = [await kill(), await kill()];
    expect(await store.shard.deadLetters.drop(second, mailId)).toBe(false);
    expect(await store.shard.deadLetters.drop(device, generateUuid())).toBe(false);
    expect(await store.shard.deadLetters.drop(device, mailId)).toBe(true);
    expect(await store.shard.deadLetters.drop(device, mailId)).toBe(false);
    expect(await store.letterIds()).toEqual([formatUuid(other)]);
    expect(await store.stateOf(device, mailId)).toBe('rejected');
  });

  it(
    'D16: letters are kept for their time, and those of a device that is deleted go, though not at once',
    async () => {
      await store.create(device, second);
      const ofDeleted = await kill(second);
      await kill();
      await store.shard.devices.delete(second);
      const replay = { device: second, mailId: ofDeleted, ttlSeconds: 60, mailboxMailsMax: 1 };
      expect(await store.shard.deadLetters.replay(replay)).toEqual({ result: 'device_not_found' });
      await store.reopen();
      // All is swept at the beginning and with every 60th sweep: where one fails for want of time, the next takes long.
      await expect.poll(() => store.letterIds(), patience).toHaveLength(1);
      expect(await store.shard.deadLetters.get(second, ofDeleted)).toBeUndefined();
      await store.reopen({ deadLetterRetentionSeconds: 0.001 });
      await expect.poll(() => store.letterIds(), patience).toEqual([]);
    },
    2 * patience.timeout,
  );
});

describe.each(engines)('dead letters of a full fleet on $name', (engine) => {
  const store = useStore(engine, { deadLettersPerFleetMax: 3 });

  it('D16: beyond the limit of a fleet the oldest goes, and other fleets keep theirs', async () => {
    await store.create(device, second, namesake);
    await store.settle(namesake, await store.send(namesake), 'reject');
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      const of = device;
      const mailId = await store.send(of);
      await store.settle(of, mailId, 'reject');
      ids.push(formatUuid(mailId));
    }
    expect(await store.letterIds()).toEqual(ids.slice(2));
    expect(await store.letterIds(otherFleetId)).toHaveLength(1);
    await store.reopen();
    // The oldest is the one whose mail was sent first, also when it dies last.
    const [early, late] = [await store.send(second), await store.send(second)];
    for (const mailId of [late, early]) await store.settle(second, mailId, 'reject');
    const left = await store.letterIds();
    expect(left).toEqual([ids[4], formatUuid(early), formatUuid(late)]);
  });
});
