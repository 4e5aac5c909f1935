/** Contract of `Shard`: mail with a dedupe key. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatUuid, generateUuid, parseUuid } from '../../../src/core/uuid.ts';
import { undescribed } from '../../../src/domain/devices/device-fields.ts';
import type { Enqueue, EnqueueOutcome } from '../../../src/domain/mail/mail.ts';
import { engines } from './engine.ts';
import { device, digestOf, mailFor, NotingSink, second, useStore } from './store.ts';

const nobody = 'FLEET001NOBODY0001' as typeof device;
const onceOf = (id: Uint8Array, rest: string): Uint8Array =>
  new Uint8Array(Buffer.concat([id, Buffer.from(rest)]));

const purposes = 6;
const operation = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ type: fc.constant('send' as const), index: fc.nat({ max: purposes - 1 }) }),
  },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('ack' as const), index: fc.nat({ max: 9 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('forget' as const), index: fc.nat({ max: purposes }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constantFrom('delete' as const, 'create' as const),
      index: fc.constant(0),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('reopen' as const), index: fc.constant(0) }) },
);

describe.each(engines)('mail that is sent once on $name', (engine) => {
  const store = useStore(engine);

  const enqueue = (more: Partial<Enqueue>, to = device): Promise<EnqueueOutcome> =>
    store.shard.mail.enqueue(mailFor(to, more));

  /** One of two that were sent at once was queued, the other is answered as that one. */
  function theOne(outcomes: readonly EnqueueOutcome[]): EnqueueOutcome & { result: 'queued' } {
    const queued = outcomes.flatMap((one) => (one.result === 'queued' ? [one] : []));
    const [first, ...others] = queued.sort((a, b) => Number(a.repeated) - Number(b.repeated));
    if (first === undefined) throw new Error('none was queued');
    expect(first.repeated).toBe(false);
    expect([first, ...others]).toHaveLength(outcomes.length);
    for (const other of others) expect(other).toEqual({ ...first, repeated: true });
    return first;
  }

  it('a mail that is sent once is queued and announced once, whatever becomes of it, its device and the server', async () => {
    await store.create(device);
    const sink = new NotingSink();
    await store.shard.streams.subscribe(device, sink);
    const once = onceOf(generateUuid(), 'welcome:0');
    const first = theOne(await Promise.all([enqueue({ dedupeKey: once }), enqueue({ dedupeKey: once })]));
    expect(first).toMatchObject({ mailboxSize: 1 });
    expect(await enqueue({ dedupeKey: once })).toEqual({ ...first, repeated: true });
    expect(await store.mailIds(device)).toEqual([formatUuid(first.mailId)]);
    await expect.poll(() => sink.announced).toHaveLength(1);

    await store.settle(device, first.mailId, 'ack');
    const repeated = { ...first, mailboxSize: 0, repeated: true };
    expect(await enqueue({ dedupeKey: once })).toEqual(repeated);
    await store.reopen();
    expect(await enqueue({ dedupeKey: once })).toEqual(repeated);
    await store.shard.devices.delete(device);
    expect(await enqueue({ dedupeKey: once })).toEqual(repeated);
    expect(sink.announced).toHaveLength(1);
  });

  it('of many that send it at once from everywhere one queues it', async () => {
    await store.create(device);
    const once = onceOf(generateUuid(), 'x');
    const idempotency = { key: generateUuid(), digest: digestOf(1) };
    const both = [store.shard, store.elsewhere, store.shard, store.elsewhere];
    for (const more of [{ dedupeKey: once }, { idempotency }]) {
      theOne(await Promise.all(both.map((shard) => shard.mail.enqueue(mailFor(device, more)))));
    }
    await expect.poll(() => store.shard.mail.size(device)).toBe(2);
  });

  it('another record, place or device is another mail', async () => {
    await store.create(device, second);
    const id = generateUuid();
    const sent = [
      await enqueue({ dedupeKey: onceOf(id, 'a') }),
      await enqueue({ dedupeKey: onceOf(id, 'ab') }),
      await enqueue({ dedupeKey: onceOf(id, 'x'.repeat(32)) }),
      await enqueue({ dedupeKey: onceOf(id, 'a') }, second),
      await enqueue({ dedupeKey: onceOf(generateUuid(), 'a') }),
    ];
    for (const one of sent) expect(one).toMatchObject({ result: 'queued', repeated: false });
    expect(await store.shard.mail.size(device)).toBe(4);
    expect(await store.shard.mail.size(second)).toBe(1);
  });

  it('a mail that is refused is not remembered, and a full mailbox does not refuse one that it has', async () => {
    await store.create(device);
    const [first, other] = [onceOf(generateUuid(), 'a'), onceOf(generateUuid(), 'b')];
    const limit = { mailboxMailsMax: 1 };
    expect(await enqueue({ dedupeKey: first, ...limit })).toMatchObject({
      result: 'queued',
      repeated: false,
    });
    expect(await enqueue({ dedupeKey: other, ...limit })).toEqual({ result: 'mailbox_full', mailboxSize: 1 });
    expect(await enqueue({ dedupeKey: first, ...limit })).toMatchObject({ result: 'queued', repeated: true });
    expect(await enqueue({ dedupeKey: other })).toMatchObject({ result: 'queued', repeated: false });
    expect(await enqueue({ dedupeKey: first }, nobody)).toEqual({ result: 'device_not_found' });
    await store.create(nobody);
    expect(await enqueue({ dedupeKey: first }, nobody)).toMatchObject({ result: 'queued', repeated: false });
  });

  it('a delayed mail that is sent once says whether it still waits for its time', async () => {
    await store.create(device);
    const once = onceOf(generateUuid(), 'a');
    const first = await enqueue({ dedupeKey: once, deliverAtMs: Date.now() + 1_000 });
    expect(first).toMatchObject({ result: 'queued', repeated: false, isDelayed: true, mailboxSize: 0 });
    expect(await enqueue({ dedupeKey: once })).toMatchObject({ repeated: true });
    await expect.poll(() => store.shard.mail.size(device)).toBe(1);
    expect(await enqueue({ dedupeKey: once })).toEqual({
      ...first,
      repeated: true,
      isDelayed: false,
      mailboxSize: 1,
    });
  });

  it('what was sent is forgotten up to a record, or all of it', async () => {
    await store.create(device, second);
    const ids = Array.from({ length: 5 }, () => generateUuid());
    for (const id of ids) {
      await enqueue({ dedupeKey: onceOf(id, 'a') });
      await enqueue({ dedupeKey: onceOf(id, 'b') }, second);
    }
    const forget = async (before: Uint8Array | undefined): Promise<number> => {
      let total = 0;
      for (;;) {
        const count = await store.shard.dedupe.prune(before);
        if (count === 0) return total;
        total += count;
      }
    };
    expect(await forget(ids[3])).toBe(6);
    expect(await forget(ids[3])).toBe(0);
    for (const [index, id] of ids.entries()) {
      expect(await enqueue({ dedupeKey: onceOf(id, 'a') })).toMatchObject({ repeated: index >= 3 });
    }
    // Forgets those of `second` among the others, and those sent anew.
    expect(await forget(undefined)).toBe(7);
    expect(await enqueue({ dedupeKey: onceOf(ids[4] as Buffer, 'a') })).toMatchObject({ repeated: false });
  });

  it('what is sent while others are forgotten is not forgotten with them', async () => {
    await store.create(device);
    await enqueue({ dedupeKey: onceOf(generateUuid(), 'before') });
    const before = generateUuid();
    const once = onceOf(generateUuid(), 'meanwhile');
    const [forgotten] = await Promise.all([store.shard.dedupe.prune(before), enqueue({ dedupeKey: once })]);
    expect(forgotten).toBe(1);
    expect(await enqueue({ dedupeKey: once })).toMatchObject({ repeated: true });
  });

  it('D18: a mail with the key of its sender is queued once, also across a restart', async () => {
    await store.create(device, second);
    const key = generateUuid();
    const same = { idempotency: { key, digest: digestOf(1) } };
    const other = { idempotency: { key, digest: digestOf(2) } };
    const stored = theOne(await Promise.all([enqueue(same), enqueue(same)]));
    expect(await enqueue(other)).toEqual({ result: 'key_reused' });
    await store.reopen();
    expect(await enqueue(same)).toEqual({ ...stored, repeated: true });
    expect(await enqueue(other)).toEqual({ result: 'key_reused' });
    // A key belongs to the mailbox it is for, and is not the device's own.
    expect(await enqueue(same, second)).toMatchObject({ result: 'queued', repeated: false });
    const ingest = { device, kind: 'message' as const, schema: 'note', payload: Buffer.from('{}') };
    expect(await store.shard.log.append({ ...ingest, ...other })).toBe('stored');
    expect(await store.shard.log.append({ ...ingest, ...same })).toBe('key_reused');
    expect(await enqueue(same)).toEqual({ ...stored, repeated: true });
    const of = (offMs: number) => ({
      idempotency: { key: generateUuid(Date.now() + offMs), digest: digestOf(1) },
    });
    expect(await enqueue(of(-2 * 86_400_000))).toEqual({ result: 'key_too_old' });
    expect(await enqueue(of(600_000))).toEqual({ result: 'key_ahead' });
    for (const to of [device, second]) expect(await store.shard.mail.size(to)).toBe(1);
  });

  it('D18: a mail that was refused leaves no trace of its key', async () => {
    await store.create(device);
    const before = await store.send(device);
    const keyed = { mailboxMailsMax: 1, idempotency: { key: generateUuid(), digest: digestOf(1) } };
    expect(await enqueue(keyed)).toEqual({ result: 'mailbox_full', mailboxSize: 1 });
    expect(await enqueue(keyed, nobody)).toEqual({ result: 'device_not_found' });
    await store.settle(device, before, 'ack');
    const other = { ...keyed, idempotency: { ...keyed.idempotency, digest: digestOf(2) } };
    expect(await enqueue(other)).toMatchObject({ result: 'queued', repeated: false });
    await store.create(nobody);
    expect(await enqueue(other, nobody)).toMatchObject({ result: 'queued', repeated: false });
  });

  it('any sequence of sending, acknowledging, forgetting, deleting and restarting agrees with the model', async () => {
    const mailboxMailsMax = 4;
    await store.create(device);
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 30 }), async (operations) => {
        const ids = Array.from({ length: purposes }, () => generateUuid());
        const sent = new Map<number, string>();
        let mails: string[] | undefined = [];
        await store.shard.devices.delete(device);
        await store.create(device);
        for (const { type, index } of operations) {
          if (type === 'send') {
            const outcome = await enqueue({ dedupeKey: onceOf(ids[index] as Buffer, 'x'), mailboxMailsMax });
            const before = sent.get(index);
            const mailboxSize = mails?.length ?? 0;
            const queued = { result: 'queued', isDelayed: false };
            if (before !== undefined) {
              const mailId = parseUuid(before);
              expect(outcome).toEqual({ ...queued, mailId, mailboxSize, repeated: true });
            } else if (mails === undefined) expect(outcome).toEqual({ result: 'device_not_found' });
            else if (mailboxSize === mailboxMailsMax)
              expect(outcome).toEqual({ result: 'mailbox_full', mailboxSize });
            else {
              expect(outcome).toMatchObject({ ...queued, repeated: false, mailboxSize: mailboxSize + 1 });
              const id = outcome.result === 'queued' ? formatUuid(outcome.mailId) : '';
              sent.set(index, id);
              mails.push(id);
            }
          } else if (type === 'ack') {
            const [id] = mails?.splice(index % Math.max(mails.length, 1), 1) ?? [];
            const mailId = id === undefined ? undefined : parseUuid(id);
            if (mailId !== undefined) await store.settle(device, mailId, 'ack');
          } else if (type === 'forget') {
            const gone = [...sent.keys()].filter((known) => known < index);
            expect(await store.shard.dedupe.prune(ids[index])).toBe(gone.length);
            for (const known of gone) sent.delete(known);
            if (index === purposes) sent.clear();
          } else if (type === 'delete') {
            expect(await store.shard.devices.delete(device)).toBe(mails !== undefined);
            mails = undefined;
          } else if (type === 'create') {
            const taken = await store.shard.devices.create([
              { device, enabled: true, secretDigests: [digestOf(1)], ...undescribed, createdAtMs: 0 },
            ]);
            expect(taken).toBe(mails && device);
            mails ??= [];
          } else await store.reopen();
          expect(await store.mailIds(device)).toEqual(mails ?? []);
        }
        await store.shard.dedupe.prune(undefined);
      }),
      { numRuns: 20 },
    );
  });
});
