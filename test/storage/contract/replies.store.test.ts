/** Contract of `Shard`: replies of devices to their mail. */

import { describe, expect, it } from 'vitest';
import { formatUuid } from '../../../src/core/uuid.ts';
import { engines } from './engine.ts';
import { device, payloadOf, second, useStore } from './store.ts';

/** The largest there is, and not as JSON.stringify would write it. */
const large = Buffer.from(`{ "n": 12345678901234567890, "text": "${'x'.repeat(4_096 - 42)}" }`);

describe.each(engines)('replies on $name', (engine) => {
  const store = useStore(engine);

  it('D31: a reply is kept with the receipt, and is a record behind that of the settlement', async () => {
    await store.create(device);
    for (const [verb, reply] of [
      ['ack', payloadOf({ open: true })],
      ['reject', large],
    ] as const) {
      const mailId = await store.send(device, { name: 'valve' });
      const from = (await store.records()).length;
      expect((await store.shard.mail.receipt(device, mailId))?.reply).toBeUndefined();
      expect(await store.settle(device, mailId, verb, { reply: new Uint8Array(reply) })).toMatchObject({
        result: 'settled',
      });
      const [event, answer, ...rest] = await store.records(from);
      expect(rest).toEqual([]);
      expect(JSON.parse(String(event?.payload))).toMatchObject({ mail_id: formatUuid(mailId) });
      expect(event?.mailId).toBeUndefined();
      expect(answer).toMatchObject({ device, kind: 'reply', schema: 'valve' });
      for (const isReopened of [false, true]) {
        if (isReopened) await store.reopen();
        const receipt = await store.shard.mail.receipt(device, mailId);
        expect(receipt?.reply && Buffer.compare(receipt.reply, reply)).toBe(0);
        const [, stored] = await store.records(from);
        expect([stored?.payload.equals(reply), stored?.mailId?.equals(mailId)]).toEqual([true, true]);
      }
    }
  });

  it('D31: the first reply stands: a settlement that is repeated stores nothing', async () => {
    await store.create(device);
    const mailId = await store.send(device);
    const reply = payloadOf({ first: 1 });
    await store.settle(device, mailId, 'ack', { reply });
    const records = await store.records();
    for (const later of [payloadOf({ second: 2 }), undefined]) {
      const again = await store.settle(device, mailId, 'ack', { ...(later && { reply: later }) });
      expect(again).toEqual({ result: 'settled', mailboxSize: 0 });
    }
    expect(await store.settle(device, mailId, 'reject', { reply: payloadOf({}) })).toMatchObject({
      result: 'already_settled',
    });
    expect(await store.records()).toEqual(records);
    // Fetches that are reported late change its receipt, and not the reply.
    await store.settle(device, mailId, 'ack', { fetched: { count: 1, firstMs: 5_000 } });
    const receipt = await store.shard.mail.receipt(device, mailId);
    expect([receipt?.fetchCount, receipt?.reply?.toString()]).toEqual([1, '{"first":1}']);
  });

  it('D31: a reply may come in anywhere, and is of its own device alone', async () => {
    await store.create(device, second);
    const mailId = await store.send(device);
    const other = await store.send(second);
    await expect.poll(() => store.elsewhere.mail.size(device)).toBe(1);
    const reply = new Uint8Array(payloadOf({ from: 'elsewhere' }));
    expect(await store.elsewhere.mail.settle({ device: second, mailId, verb: 'ack', reply })).toMatchObject({
      result: 'not_found',
    });
    await store.elsewhere.mail.settle({ device, mailId, verb: 'ack', reply });
    await store.settle(second, other, 'ack');
    await expect
      .poll(async () => (await store.shard.mail.receipt(device, mailId))?.reply?.toString())
      .toBe('{"from":"elsewhere"}');
    expect((await store.shard.mail.receipt(second, other))?.reply).toBeUndefined();
    expect((await store.records()).filter(({ kind }) => kind === 'reply')).toHaveLength(1);
  });
});
