/** Contract of `Shard`: the bytes of a fleet's waiting mail, and their limit. */

import { describe, expect, it } from 'vitest';
import { generateUuid } from '../../../src/core/uuid.ts';
import type { Enqueue, MailOutcome } from '../../../src/domain/mail/mail.ts';
import { waitingBytesOf } from '../../../src/domain/mail/mail-bytes.ts';
import { engines } from './engine.ts';
import {
  device,
  digestOf,
  fleetId,
  mailFor,
  namesake,
  otherFleetId,
  payloadOf,
  second,
  useStore,
} from './store.ts';

const farMs = 3_600_000;
const letters = 'x'.repeat(10_000);
const payload = payloadOf({ letters });
const one = waitingBytesOf(payload.length);
const mailsMax = 3;
/** Of the first fleet; the other has no limit. */
const bytesMax = mailsMax * one;

describe.each(engines)('the bytes of mail on $name', (engine) => {
  const limited = (of: string): number => (of === fleetId ? bytesMax : Number.POSITIVE_INFINITY);
  const store = useStore(engine, { mailBytesMax: limited, deadLettersPerFleetMax: 5 });
  const bytes = async (of = fleetId): Promise<number> => store.shard.mail.bytesOfFleet(of);
  const full = { result: 'fleet_mail_full' };
  const send = async (to = device, more: Partial<Enqueue> = {}): Promise<MailOutcome['result']> =>
    (await store.shard.mail.enqueue(mailFor(to, { payload, ...more }))).result as MailOutcome['result'];

  it('count from when a mail is sent until it ends, however it ends, and not while it is history', async () => {
    await store.create(device);
    const deliverAtMs = Date.now() + farMs;
    expect(await bytes()).toBe(0);
    const ids = await store.sendMany(device, 2, { payload });
    const delayed = await store.send(device, { payload, deliverAtMs });
    expect(await bytes()).toBe(3 * one);
    await store.settle(device, ids[0] as Uint8Array, 'requeue', { fetched: { count: 1, firstMs: 1 } });
    expect(await bytes()).toBe(3 * one);
    await store.settle(device, ids[0] as Uint8Array, 'ack', { reply: payloadOf({ done: true }) });
    await store.settle(device, ids[0] as Uint8Array, 'ack');
    expect(await bytes()).toBe(2 * one);
    await store.settle(device, ids[1] as Uint8Array, 'reject');
    await store.shard.mail.withdraw(device, delayed);
    await store.shard.mail.withdraw(device, delayed);
    expect(await bytes()).toBe(0);
    expect(await store.letterIds()).toHaveLength(1);
    const over = await store.send(device, { payload, requeuesMax: 0 });
    await store.settle(device, over, 'requeue');
    const withdrawn = await store.send(device);
    await store.shard.mail.withdraw(device, withdrawn);
    await store.send(device, { payload, ttlSeconds: 0 });
    await expect.poll(() => bytes()).toBe(0);
    await store.reopen();
    expect(await bytes()).toBe(0);
  });

  it('stay as they are when a delayed mail is delivered, and go when it finds its mailbox full', async () => {
    await store.create(device);
    const deliverAtMs = Date.now() + 500;
    const ids = await store.sendMany(device, 2, { payload, deliverAtMs, mailboxMailsMax: 1 });
    expect(await bytes()).toBe(2 * one);
    await expect.poll(() => store.stateOf(device, ids[1] as Uint8Array)).toBe('mailbox_full');
    expect(await store.stateOf(device, ids[0] as Uint8Array)).toBe('queued');
    expect(await bytes()).toBe(one);
  });

  it('at their limit, mail of that fleet is refused whatever queues it, and that of another is not', async () => {
    await store.create(device, second, namesake);
    const dead = await store.send(device, { payload });
    await store.settle(device, dead, 'reject');
    const ids = await store.sendMany(device, mailsMax - 1, { payload });
    const dedupeKey = Buffer.concat([generateUuid(), Buffer.from('x')]);
    const idempotency = { key: generateUuid(), digest: digestOf(1) };
    expect(await send(second, { dedupeKey, idempotency })).toBe('queued');
    expect(await bytes()).toBe(bytesMax);
    for (const way of [store.shard, store.elsewhere]) {
      expect(await way.mail.enqueue(mailFor(device))).toEqual(full);
      expect(await way.mail.enqueue(mailFor(second, { deliverAtMs: Date.now() + farMs }))).toEqual(full);
    }
    // What was sent before is known whatever the limit.
    expect(await send(second, { dedupeKey })).toBe('queued');
    expect(await send(second, { idempotency })).toBe('queued');
    const replay = { device, mailId: dead, ttlSeconds: 60, mailboxMailsMax: 9 };
    expect(await store.shard.deadLetters.replay(replay)).toEqual(full);
    const { device: _, ...mail } = mailFor(device);
    const broadcast = { broadcast: generateUuid(), devices: [device, namesake, second], mail };
    expect(await store.shard.mail.broadcast(broadcast)).toEqual({
      queued: 1,
      refused: [device, second].map((of) => ({ device: of, reason: 'fleet_mail_full' })),
    });
    expect(await send(namesake)).toBe('queued');
    expect(await bytes(otherFleetId)).toBe(one + waitingBytesOf(mail.payload.length));
    expect(await bytes()).toBe(bytesMax);
    // A requeue keeps its bytes, and what has ended makes room.
    const [first] = ids as [Uint8Array];
    expect(await store.settle(device, first, 'requeue')).toMatchObject({ result: 'settled' });
    await store.settle(device, first, 'ack');
    expect(await store.shard.deadLetters.replay(replay)).toMatchObject({ result: 'queued' });
    expect(await send()).toBe('fleet_mail_full');
    await store.reopen();
    expect(await send()).toBe('fleet_mail_full');
    await store.reopen({ mailBytesMax: () => bytesMax + one });
    expect([await send(), await send()]).toEqual(['queued', 'fleet_mail_full']);
  });

  it('of mail that is replaced go, and a newer one that takes no more has room at any limit', async () => {
    await store.create(device);
    const deliverAtMs = Date.now() + farMs;
    const letter = (length: number): Buffer => payloadOf({ letters: letters.slice(0, length) });
    const bytesOf = (...lengths: number[]): number =>
      lengths.reduce((sum, length) => sum + waitingBytesOf(letter(length).length), 0);
    const sendOf = (replaceKey: string, length: number, more: Partial<Enqueue> = {}) =>
      send(device, { replaceKey, payload: letter(length), ...more });
    await store.sendMany(device, 2, { payload });
    expect([await sendOf('a', 4_000), await sendOf('b', 4_000, { deliverAtMs })]).toEqual([
      'queued',
      'queued',
    ]);
    const others = await bytes();
    expect(others).toBe(2 * one + bytesOf(4_000, 4_000));
    // In its place, out of the delayed ones into the mailbox, and back among them.
    for (const [key, length, more] of [
      ['a', 1_000, {}],
      ['a', 5_000, {}],
      ['b', 3_000, { deliverAtMs }],
      ['b', 4_500, {}],
      ['a', 2_000, { deliverAtMs }],
      ['a', 4_800, {}],
    ] as const) {
      expect(await sendOf(key, length, more)).toBe('queued');
    }
    expect(await bytes()).toBe(2 * one + bytesOf(4_800, 4_500));
    expect(await sendOf('b', 5_500)).toBe('fleet_mail_full');
    expect(await sendOf('b', 5_500, { deliverAtMs })).toBe('fleet_mail_full');
    expect(await bytes()).toBe(2 * one + bytesOf(4_800, 4_500));
    await store.reopen({ mailBytesMax: () => one });
    expect(await sendOf('c', 0)).toBe('fleet_mail_full');
    expect([await sendOf('b', 4_500), await sendOf('b', 4_501)]).toEqual(['queued', 'fleet_mail_full']);
    expect(await sendOf('a', 10, { deliverAtMs })).toBe('queued');
    expect(await bytes()).toBe(2 * one + bytesOf(10, 4_500));
    await store.reopen();
    expect(await bytes()).toBe(2 * one + bytesOf(10, 4_500));
  });

  it('many senders at once go beyond the limit by no more than what is under way', async () => {
    await store.create(device, second);
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        (n % 2 ? store.shard : store.elsewhere).mail.enqueue(mailFor(n % 3 ? device : second, { payload })),
      ),
    );
    const queued = outcomes.filter(({ result }) => result === 'queued').length;
    expect(queued).toBeGreaterThanOrEqual(mailsMax);
    expect(outcomes.filter(({ result }) => result !== 'queued')).toEqual(
      Array.from({ length: 200 - queued }, () => full),
    );
    expect(await bytes()).toBe(queued * one);
    expect(await send()).toBe('fleet_mail_full');
  });

  it('go with their device', async () => {
    await store.create(device, second);
    await store.sendMany(device, 2, { payload });
    await store.send(second, { payload, deliverAtMs: Date.now() + farMs });
    expect(await store.shard.devices.delete(device)).toBe(true);
    expect(await bytes()).toBe(one);
    expect(await store.shard.devices.delete(second)).toBe(true);
    expect(await bytes()).toBe(0);
    await store.create(device);
    expect([await send(), await bytes()]).toEqual(['queued', one]);
  });
});
