/** Contract of `Shard`: reading the log. */

import { describe, expect, it } from 'vitest';
import { formatUuid } from '../../../src/core/uuid.ts';
import type { StoredRecord } from '../../../src/domain/records/record.ts';
import { engines } from './engine.ts';
import { device, type Store, second, useStore } from './store.ts';

/** Stores so many, one after the other. */
async function ingest(store: Store, from: number, count: number): Promise<void> {
  for (let n = from; n < from + count; n += 1) {
    const payload = Buffer.from(`{"n":${n}}`);
    const kind = n % 2 === 0 ? 'datapoint' : 'message';
    await store.shard.log.append({ device: n % 3 === 0 ? second : device, kind, schema: 'reading', payload });
  }
}

const numbersOf = (records: readonly StoredRecord[]): number[] =>
  records.map(({ payload }) => JSON.parse(payload.toString('utf8')).n);

describe.each(engines)('records on $name', (engine) => {
  const store = useStore(engine);

  it('a log without records ends where it begins', async () => {
    const end = await store.shard.log.end();
    expect(await store.shard.log.read(end)).toEqual({ records: [], next: end, damaged: false });
    expect(await store.records()).toEqual([]);
    expect(await store.shard.log.timeAt(end)).toBeUndefined();
    expect(await store.shard.log.positionAt(Date.now())).toBeLessThanOrEqual(end);
  });

  it('records are read in the order that they were stored in, from any position, by pages, and stay where they are', async () => {
    await ingest(store, 0, 12);
    const before = await store.records();
    await Promise.all([12, 13, 14, 15, 16].map((n) => ingest(store, n, 1)));
    for (const isReopened of [false, true]) {
      if (isReopened) await store.reopen();
      const records = await store.records();
      expect(records.slice(0, 12)).toEqual(before);
      expect(numbersOf(before)).toEqual(Array.from({ length: 12 }, (_, n) => n));
      expect(numbersOf(records).sort((a, b) => a - b)).toEqual(Array.from({ length: 17 }, (_, n) => n));
      const end = await store.shard.log.end();
      for (const [index, { position }] of records.entries()) {
        expect(position).toBeGreaterThan(records[index - 1]?.position ?? -1);
        expect(position).toBeLessThan(end);
        const page = await store.shard.log.read(position);
        expect(page.damaged).toBe(false);
        expect(page.records[0]?.position).toBe(position);
        expect(page.next).toBeGreaterThan(page.records.at(-1)?.position ?? end);
        expect(await store.records(position)).toEqual(records.slice(index));
      }
      expect(await store.shard.log.read(end)).toEqual({ records: [], next: end, damaged: false });
      expect(await store.shard.log.reorderedUntil()).toBeLessThanOrEqual(records[0]?.position ?? 0);
    }
  });

  it('read backwards, from the end or from any position, they are the same records', async () => {
    expect(await store.shard.log.readBefore(0)).toMatchObject({ records: [], next: 0 });
    await ingest(store, 0, 6);
    await Promise.all([6, 7, 8, 9, 10].map((n) => ingest(store, n, 1)));
    const records = await store.records();
    const end = await store.shard.log.end();
    for (const before of [end, ...records.map(({ position }) => position)]) {
      const found: StoredRecord[] = [];
      for (let at = before; ; ) {
        const page = await store.shard.log.readBefore(at);
        found.unshift(...page.records);
        if (page.next === at) break;
        at = page.next;
      }
      expect(found).toEqual(records.filter(({ position }) => position < before));
    }
  });

  it('the end of the log is where reading ends, and the position that the next record gets', async () => {
    for (let n = 0; n < 5; n += 1) {
      const end = await store.shard.log.end();
      await ingest(store, n, 1);
      const records = await store.records();
      expect(records.at(-1)?.position).toBe(end);
      const page = await store.shard.log.read(end);
      expect(page.next).toBe(await store.shard.log.end());
      await expect.poll(() => store.elsewhere.log.end()).toBe(page.next);
      if (n === 2) await store.reopen();
    }
  });

  it('a reader that follows the log misses nothing, wherever it is written and read', async () => {
    const count = 200;
    const followed: StoredRecord[] = [];
    const follow = async (): Promise<void> => {
      for (let at = 0; followed.length < count; ) {
        const page = await store.elsewhere.log.read(at);
        followed.push(...page.records);
        at = page.next;
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    };
    const write = async (writer: number): Promise<void> => {
      const shard = writer % 2 === 0 ? store.shard : store.elsewhere;
      for (let n = 0; n < count / 4; n += 1) {
        const payload = Buffer.from(`{"n":${n},"writer":${writer}}`);
        await shard.log.append({ device, kind: 'datapoint', schema: 'reading', payload });
      }
    };
    await Promise.all([follow(), write(0), write(1), write(2), write(3)]);
    expect(followed).toEqual(await store.records());
    const written = followed.map(({ payload }) => JSON.parse(payload.toString('utf8')));
    for (const writer of [0, 1, 2, 3]) {
      const own = written.filter((one) => one.writer === writer);
      expect(own.map(({ n }) => n)).toEqual(Array.from({ length: count / 4 }, (_, n) => n));
    }
  });

  it('a position is found by time and a time by position, early rather than late', async () => {
    await ingest(store, 0, 5);
    const first = await store.records();
    // Further apart than a search may be early.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    await ingest(store, 5, 5);
    const records = await store.records();
    const [fifth, sixth] = records.slice(4, 6) as [StoredRecord, StoredRecord];
    const found = await store.shard.log.positionAt(sixth.storedAtMs);
    expect(found).toBeGreaterThan(fifth.position);
    expect(found).toBeLessThanOrEqual(sixth.position);
    expect(await store.shard.log.positionAt(0)).toBeLessThanOrEqual(records[0]?.position ?? 0);
    expect(await store.shard.log.positionAt(Date.now() + 3_600_000)).toBeLessThanOrEqual(
      await store.shard.log.end(),
    );
    for (const { position, storedAtMs } of records) {
      const timeMs = await store.shard.log.timeAt(position);
      expect(Math.abs((timeMs ?? 0) - storedAtMs)).toBeLessThan(1_000);
    }
    expect(await store.shard.log.timeAt(await store.shard.log.end())).toBeUndefined();
    expect(first.map(({ position }) => position)).toEqual(
      records.slice(0, 5).map(({ position }) => position),
    );
  });

  it('D17: each change of a mail is a record, in order, stored with it', async () => {
    await store.create(device);
    const mailId = await store.send(device, { name: 'set-1', requeuesMax: 1 });
    await store.settle(device, mailId, 'requeue', { fetched: { count: 2, firstMs: 5_000 } });
    await store.settle(device, mailId, 'requeue');
    const replayed = await store.shard.deadLetters.replay({
      device,
      mailId,
      ttlSeconds: 60,
      mailboxMailsMax: 9,
    });
    const newId = replayed.result === 'queued' ? replayed.mailId : Buffer.alloc(16);
    const delayed = await store.send(device, { name: 'set-1', deliverAtMs: Date.now() + 3_600_000 });
    await store.shard.mail.withdraw(device, delayed);
    const rejected = await store.send(device, { name: 'set-1' });
    await store.settle(device, rejected, 'reject');
    // None of these changes anything.
    await store.settle(device, rejected, 'reject');
    await store.settle(device, rejected, 'ack');
    await store.shard.mail.withdraw(device, delayed);
    await store.shard.deadLetters.drop(device, rejected);

    const fetched = { fetch_count: 2, first_fetched_at: '1970-01-01T00:00:05.000Z' };
    const unfetched = { requeue_count: 0, fetch_count: 0, first_fetched_at: null };
    const [id, anew, late, last] = [mailId, newId, delayed, rejected].map((one) => formatUuid(one));
    expect(await store.mailEvents(device)).toEqual([
      { mail_id: id, event: 'queued' },
      { mail_id: id, event: 'requeued', requeue_count: 1, ...fetched },
      { mail_id: id, event: 'over_requeued', requeue_count: 1, ...fetched },
      { mail_id: anew, event: 'queued' },
      { mail_id: id, event: 'replayed', requeue_count: 1, ...fetched, new_mail_id: anew },
      { mail_id: late, event: 'delayed' },
      { mail_id: late, event: 'withdrawn', ...unfetched },
      { mail_id: last, event: 'queued' },
      { mail_id: last, event: 'rejected', ...unfetched },
    ]);
    for (const { kind, schema } of await store.records())
      expect([kind, schema]).toEqual(['receipt', 'set-1']);
  });

  it('of a device that is deleted no mail ends by a record: its mailbox is gone', async () => {
    await store.create(device);
    await store.send(device);
    await ingest(store, 1, 1);
    await store.shard.devices.delete(device);
    expect((await store.records()).map(({ kind }) => kind)).toEqual(['receipt', 'message']);
  });

  it('what retention takes goes from the front: the rest stays where it is, and the end never goes back', async () => {
    await ingest(store, 0, 20);
    const before = await store.records();
    const end = await store.shard.log.end();
    await store.reopen({ logRetentionSeconds: 0.001 });
    const front = before[0]?.position ?? 0;
    await expect
      .poll(async () => (await store.shard.log.read(0)).records[0]?.position ?? end)
      .toBeGreaterThan(front);
    await store.reopen({ logRetentionSeconds: 86_400 });
    const left = await store.records();
    expect(left).toEqual(before.slice(before.length - left.length));
    expect(await store.shard.log.end()).toBe(end);
    const [first] = left;
    if (first !== undefined) {
      const timeMs = await store.shard.log.timeAt(front);
      expect(Math.abs((timeMs ?? 0) - first.storedAtMs)).toBeLessThan(1_000);
    }
    await ingest(store, 20, 1);
    const after = await store.records();
    expect(after.at(-1)?.position).toBe(end);
    expect(numbersOf(after.slice(-1))).toEqual([20]);
  });
});
