/** Contract of `Shard`: settling mail. */

import { describe, expect, it } from 'vitest';
import { formatUuid, generateUuid } from '../../../src/core/uuid.ts';
import type { SettleVerb } from '../../../src/domain/mail/mail.ts';
import { engines } from './engine.ts';
import { device, namesake, second, useStore } from './store.ts';

const verbs: readonly SettleVerb[] = ['ack', 'reject', 'requeue'];

describe.each(engines)('settling mail on $name', (engine) => {
  const store = useStore(engine);
  const textsOf = (ids: readonly Uint8Array[]): string[] => ids.map((id) => formatUuid(id));

  it('D15: any mail of the mailbox may be settled, and the others keep their order', async () => {
    await store.create(device);
    let waiting = await store.sendMany(device, 9);
    for (const [verb, index] of [
      ['ack', 4],
      ['reject', 7],
      ['ack', 0],
      ['reject', 0],
      ['ack', 4],
    ] as const) {
      const [mailId] = waiting.splice(index, 1) as [Uint8Array];
      expect(await store.settle(device, mailId, verb)).toEqual({
        result: 'settled',
        mailboxSize: waiting.length,
      });
      expect(await store.mailIds(device)).toEqual(textsOf(waiting));
      const head = (await store.shard.mail.head(device)).mail;
      expect(head && formatUuid(head.id)).toBe(textsOf(waiting)[0]);
    }
    waiting = [...waiting, ...(await store.sendMany(device, 2))];
    expect(await store.mailIds(device)).toEqual(textsOf(waiting));
  });

  it('D28: with a settlement comes the head behind it, also of one that is repeated', async () => {
    await store.create(device);
    const [first, behind] = (await store.sendMany(device, 2)) as [Uint8Array, Uint8Array];
    const settleThenHead = async (mailId: Uint8Array, verb: SettleVerb) => {
      const { head, ...outcome } = await store.shard.mail.settleThenHead({ device, mailId, verb });
      return { ...outcome, head: head?.mail && formatUuid(head.mail.id), size: head?.size };
    };
    const settled = { result: 'settled', mailboxSize: 1, head: formatUuid(behind), size: 1 };
    expect(await settleThenHead(first, 'ack')).toEqual(settled);
    expect(await settleThenHead(first, 'ack')).toEqual(settled);
    expect(await settleThenHead(behind, 'requeue')).toEqual(settled);
    expect(await settleThenHead(first, 'reject')).toMatchObject({
      result: 'already_settled',
      head: undefined,
    });
    expect(await settleThenHead(behind, 'reject')).toEqual({
      result: 'settled',
      mailboxSize: 0,
      head: undefined,
      size: 0,
    });
    expect(await settleThenHead(generateUuid(), 'ack')).toMatchObject({
      result: 'not_found',
      size: undefined,
    });
  });

  it('D14: a requeue puts a mail at the tail, with its id and one requeue more, each time', async () => {
    await store.create(device);
    const [first, second, third] = (await store.sendMany(device, 3)) as [Uint8Array, Uint8Array, Uint8Array];
    const [before] = (await store.shard.mail.list(device, '', 1)).items;
    expect(await store.settle(device, first, 'requeue')).toEqual({ result: 'settled', mailboxSize: 3 });
    expect(await store.mailIds(device)).toEqual(textsOf([second, third, first]));
    expect(await store.settle(device, third, 'requeue')).toEqual({ result: 'settled', mailboxSize: 3 });
    await store.reopen();
    expect(await store.settle(device, first, 'requeue')).toEqual({ result: 'settled', mailboxSize: 3 });
    expect(await store.mailIds(device)).toEqual(textsOf([second, third, first]));
    const after = (await store.shard.mail.list(device, '', 9)).items;
    expect(after.map(({ requeueCount }) => requeueCount)).toEqual([0, 1, 2]);
    // Nothing else is new, nor is its life.
    expect(after[2]).toEqual({ ...before, requeueCount: 2 });
    const [newest] = (await store.sendMany(device, 1)) as [Uint8Array];
    expect(await store.mailIds(device)).toEqual(textsOf([second, third, first, newest]));
  });

  it('D14: a sole mail that is requeued is the head again at once', async () => {
    await store.create(device);
    const mailId = await store.send(device);
    for (let count = 1; count <= 300; count += 60) {
      for (let n = 0; n < 60; n += 1) await store.settle(device, mailId, 'requeue');
      const { size, mail } = await store.shard.mail.head(device);
      expect([size, mail?.requeueCount, mail?.id.equals(mailId)]).toEqual([1, count + 59, true]);
    }
    expect(await store.settle(device, mailId, 'ack')).toEqual({ result: 'settled', mailboxSize: 0 });
  });

  it('D15: the same verb again is answered as before, another one that the mail is settled', async () => {
    await store.create(device);
    const [waiting, ...others] = (await store.sendMany(device, 3)) as [Uint8Array, ...Uint8Array[]];
    for (const verb of ['ack', 'reject'] as const) {
      const mailId = others.pop() as Uint8Array;
      expect(await store.settle(device, mailId, verb)).toMatchObject({ result: 'settled' });
      const mailboxSize = others.length + 1;
      for (const isReopened of [false, true]) {
        if (isReopened) await store.reopen();
        for (const later of verbs) {
          const result = later === verb ? 'settled' : 'already_settled';
          expect(await store.settle(device, mailId, later)).toEqual({ result, mailboxSize });
        }
      }
    }
    expect(await store.mailIds(device)).toEqual(textsOf([waiting]));
  });

  it('D15: of the mails settled last 32 are remembered', async () => {
    await store.create(device);
    const [first, next, ...rest] = (await store.sendMany(device, 33)) as [
      Uint8Array,
      Uint8Array,
      ...Uint8Array[],
    ];
    for (const mailId of [first, next, ...rest]) await store.settle(device, mailId, 'ack');
    expect(await store.settle(device, first, 'ack')).toEqual({ result: 'not_found', mailboxSize: 0 });
    for (const mailId of [next, ...rest]) {
      expect(await store.settle(device, mailId, 'ack')).toEqual({ result: 'settled', mailboxSize: 0 });
    }
    // To be asked again makes none of them newer.
    const [last] = (await store.sendMany(device, 1)) as [Uint8Array];
    await store.settle(device, last, 'ack');
    expect(await store.settle(device, next, 'ack')).toEqual({ result: 'not_found', mailboxSize: 0 });
  });

  it('D15: a mail that never was in this mailbox is not found', async () => {
    await store.create(device, second, namesake);
    const ofSecond = await store.send(second);
    const delayed = await store.send(device, { deliverAtMs: Date.now() + 3_600_000 });
    await store.send(device);
    for (const verb of verbs) {
      for (const mailId of [generateUuid(), ofSecond, delayed]) {
        expect(await store.settle(device, mailId, verb)).toEqual({ result: 'not_found', mailboxSize: 1 });
      }
      for (const of of [namesake, `${namesake.slice(0, 8)}NOBODY0001` as typeof namesake]) {
        expect(await store.settle(of, ofSecond, verb)).toEqual({ result: 'not_found', mailboxSize: 0 });
      }
    }
    expect(await store.shard.mail.size(second)).toBe(1);
  });

  it('D15: of two verbs at once one settles the mail, wherever they come in', async () => {
    await store.create(device);
    for (let round = 0; round < 8; round += 1) {
      const mailId = await store.send(device);
      await expect.poll(() => store.elsewhere.mail.size(device)).toBe(1);
      const given = { device, mailId };
      const outcomes = await Promise.all([
        store.shard.mail.settle({ ...given, verb: 'ack' }),
        store.elsewhere.mail.settle({ ...given, verb: round % 2 ? 'reject' : 'ack' }),
      ]);
      const results = outcomes.map(({ result }) => result).sort();
      expect(results).toEqual(round % 2 ? ['already_settled', 'settled'] : ['settled', 'settled']);
      expect(outcomes.map(({ mailboxSize }) => mailboxSize)).toEqual([0, 0]);
      const { state } = (await store.shard.mail.receipt(device, mailId)) ?? {};
      if (round % 2) expect(state).toBe(outcomes[0]?.result === 'settled' ? 'acked' : 'rejected');
    }
    expect((await store.mailEvents(device)).map(({ event }) => event)).toHaveLength(16);
  });

  it('D16: one requeue more than a mail is allowed ends it, and is remembered as the requeue that it was', async () => {
    await store.create(device);
    for (const requeuesMax of [0, 1, 3]) {
      const mailId = await store.send(device, { requeuesMax });
      for (let count = 1; count <= requeuesMax; count += 1) {
        expect(await store.settle(device, mailId, 'requeue')).toEqual({ result: 'settled', mailboxSize: 1 });
      }
      expect(await store.stateOf(device, mailId)).toBe('queued');
      for (const _ of [1, 2]) {
        expect(await store.settle(device, mailId, 'requeue')).toEqual({ result: 'settled', mailboxSize: 0 });
      }
      expect(await store.settle(device, mailId, 'ack')).toEqual({
        result: 'already_settled',
        mailboxSize: 0,
      });
      const ended = { state: 'over_requeued', requeueCount: requeuesMax };
      expect(await store.shard.mail.receipt(device, mailId)).toMatchObject(ended);
      expect(await store.shard.deadLetters.get(device, mailId)).toMatchObject({
        reason: 'over_requeued',
        requeueCount: requeuesMax,
      });
    }
  });
});
