/** Contract of `Shard`: withdrawn mail. */

import { describe, expect, it } from 'vitest';
import { formatUuid, generateUuid } from '../../../src/core/uuid.ts';
import { engines } from './engine.ts';
import { device, second, useStore } from './store.ts';

describe.each(engines)('withdrawn mail on $name', (engine) => {
  const store = useStore(engine);

  it('a mail that waits is taken back, wherever it stands, as often as it is asked', async () => {
    await store.create(device);
    const [first, requeued, delayed] = [
      await store.send(device),
      await store.send(device),
      await store.send(device, { deliverAtMs: Date.now() + 3_600_000 }),
    ];
    const stays = await store.send(device);
    await store.settle(device, requeued, 'requeue');
    for (const [index, mailId] of [first, requeued, delayed].entries()) {
      const mailboxSize = [2, 1, 1][index];
      expect(await store.shard.mail.withdraw(device, mailId)).toEqual({ result: 'withdrawn', mailboxSize });
      const receipt = await store.shard.mail.receipt(device, mailId);
      expect(receipt).toMatchObject({ state: 'withdrawn', settledAtMs: expect.any(Number) });
      expect(await store.shard.deadLetters.get(device, mailId)).toBeUndefined();
    }
    await store.reopen();
    for (const mailId of [first, requeued, delayed]) {
      expect(await store.shard.mail.withdraw(device, mailId)).toEqual({
        result: 'withdrawn',
        mailboxSize: 1,
      });
    }
    expect(await store.mailIds(device)).toEqual([formatUuid(stays)]);
  });

  it('D15: a device that answers a mail that was withdrawn learns that it is settled', async () => {
    await store.create(device);
    const mailId = await store.send(device);
    await store.shard.mail.withdraw(device, mailId);
    for (const verb of ['ack', 'reject', 'requeue'] as const) {
      expect(await store.settle(device, mailId, verb)).toEqual({
        result: 'already_settled',
        mailboxSize: 0,
      });
    }
    // One that was never in its mailbox it cannot know.
    const delayed = await store.send(device, { deliverAtMs: Date.now() + 3_600_000 });
    await store.shard.mail.withdraw(device, delayed);
    expect(await store.settle(device, delayed, 'ack')).toEqual({ result: 'not_found', mailboxSize: 0 });
  });

  it('a mail that has ended otherwise is settled, as long as its receipt is kept; others are not found', async () => {
    await store.create(device, second);
    const ids = await store.sendMany(device, 40);
    for (const [index, mailId] of ids.entries()) {
      await store.settle(device, mailId, index % 2 ? 'ack' : 'reject');
    }
    for (const mailId of ids) {
      expect(await store.shard.mail.withdraw(device, mailId)).toEqual({
        result: 'already_settled',
        mailboxSize: 0,
      });
    }
    const ofSecond = await store.send(second);
    for (const mailId of [generateUuid(), ofSecond]) {
      expect(await store.shard.mail.withdraw(device, mailId)).toEqual({
        result: 'not_found',
        mailboxSize: 0,
      });
    }
    const nobody = 'FLEET001NOBODY0001' as typeof device;
    expect(await store.shard.mail.withdraw(nobody, ofSecond)).toEqual({
      result: 'not_found',
      mailboxSize: 0,
    });
    expect(await store.shard.mail.size(second)).toBe(1);
  });

  it('of an acknowledgement and a withdrawal at once one counts', async () => {
    await store.create(device);
    for (let round = 0; round < 8; round += 1) {
      const mailId = await store.send(device);
      await expect.poll(() => store.elsewhere.mail.size(device)).toBe(1);
      const [settled, withdrawn] = await Promise.all([
        store.settle(device, mailId, 'ack'),
        store.elsewhere.mail.withdraw(device, mailId),
      ]);
      const isAcked = settled.result === 'settled';
      expect(settled).toEqual({ result: isAcked ? 'settled' : 'already_settled', mailboxSize: 0 });
      expect(withdrawn).toEqual({ result: isAcked ? 'already_settled' : 'withdrawn', mailboxSize: 0 });
      await expect.poll(() => store.stateOf(device, mailId)).toBe(isAcked ? 'acked' : 'withdrawn');
    }
  });
});
