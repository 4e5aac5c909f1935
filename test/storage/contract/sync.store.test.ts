/** Contract of `Shard`: a whole wake in one write (D29), and a device's own order (D30). */

import { describe, expect, it } from 'vitest';
import type { DeviceKey } from '../../../src/core/identity.ts';
import { formatUuid, generateUuid } from '../../../src/core/uuid.ts';
import type { Shard } from '../../../src/domain/shard.ts';
import type { QueueStand } from '../../../src/domain/sync/device-queues.ts';
import type { Sync, SyncOutcome, SyncRecord } from '../../../src/domain/sync/sync.ts';
import { engines } from './engine.ts';
import { device, namesake, newDevice, payloadOf, second, useStore } from './store.ts';

/** Records with these numbers as their content; null is one that was refused. */
const numbered = (...numbers: (number | null)[]): (SyncRecord | undefined)[] =>
  numbers.map((n) =>
    n === null ? undefined : { kind: 'datapoint', schema: 'reading', payload: payloadOf({ n }) },
  );
const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe.each(engines)('sync on $name', (engine) => {
  const store = useStore(engine);

  function sync(more: Partial<Sync> = {}, by: Shard = store.shard): Promise<SyncOutcome> {
    const plain = { device, records: [], queue: undefined, settlements: [] };
    return by.sync({ ...plain, mail: { mailsMax: 1, bytesMax: 65_536 }, ...more });
  }

  /** Sends these numbers of a queue, the first of which is the first number. */
  async function send(name: string, numbers: number[], by = store.shard): Promise<QueueStand | undefined> {
    return (await sync({ records: numbered(...numbers), queue: { name, seq: numbers[0] ?? 1 } }, by)).queue;
  }

  /** The numbers that the log has of a device, in its order. */
  async function stored(of: DeviceKey = device): Promise<number[]> {
    const records = (await store.records()).filter((one) => one.device === of && one.kind !== 'receipt');
    return records.map(({ payload }) => JSON.parse(payload.toString()).n);
  }

  it('D11, D29: records are stored in their order, byte for byte, and each has its own id', async () => {
    const records: SyncRecord[] = [
      { kind: 'datapoint', schema: 'reading', payload: Buffer.from('{ "a":1.50,"a" : 2 }') },
      { kind: 'message', schema: 'a'.repeat(255), payload: Buffer.from('{"é":12345678901234567890}') },
      { kind: 'datapoint', schema: 'late', payload: Buffer.from('{}'), recordedAtMs: 1_700_000_000_123 },
    ];
    await store.shard.log.append({ device: second, ...(records[0] as SyncRecord) });
    expect((await sync({ records: [records[0], undefined, records[1], records[2]] })).settled).toEqual([]);
    await store.shard.log.append({ device: second, ...(records[0] as SyncRecord) });
    for (const isReopened of [false, true]) {
      if (isReopened) await store.reopen();
      const found = await store.records();
      expect(found.map((one) => one.device)).toEqual([second, device, device, device, second]);
      for (const [index, { payload, ...one }] of records.entries()) {
        expect(found[index + 1]).toMatchObject(one);
        expect(found[index + 1]?.recordedAtMs).toBe(one.recordedAtMs);
        expect(found[index + 1]?.payload.equals(payload)).toBe(true);
      }
      expect(new Set(found.map(({ id }) => formatUuid(id))).size).toBe(5);
      expect(found.map(({ position }) => position)).toEqual([0, 1, 2, 3, 4]);
    }
  });

  it('D30: what is stored already is stored no second time, whoever is asked, however often', async () => {
    await store.create(device);
    expect(await send('q', [1, 2, 3])).toEqual({ storedTo: 3, skipped: 0 });
    expect(await send('q', [1, 2, 3], store.elsewhere)).toEqual({ storedTo: 3, skipped: 0 });
    expect(await send('q', [1, 2, 3, 4, 5], store.elsewhere)).toEqual({ storedTo: 5, skipped: 0 });
    await store.reopen();
    expect(await send('q', [2, 3])).toEqual({ storedTo: 5, skipped: 0 });
    expect(await send('q', [5, 6])).toEqual({ storedTo: 6, skipped: 0 });
    expect(await stored()).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('D30: a refused record has its number, also where a repetition begins behind it', async () => {
    await store.create(device);
    const first = { records: numbered(1, null, 3, null), queue: { name: 'q', seq: 1 } };
    expect((await sync(first)).queue).toEqual({ storedTo: 4, skipped: 0 });
    const again = { records: numbered(null, 3, null, 5, null, 7), queue: { name: 'q', seq: 2 } };
    expect((await sync(again)).queue).toEqual({ storedTo: 7, skipped: 0 });
    const refused = { records: numbered(null, null), queue: { name: 'q', seq: 8 } };
    expect((await sync(refused)).queue).toEqual({ storedTo: 9, skipped: 0 });
    expect(await stored()).toEqual([1, 3, 5, 7]);
  });

  it('D30: a gap is taken and counted, by each queue for itself', async () => {
    await store.create(device, second);
    expect(await send('q', [3, 4])).toEqual({ storedTo: 4, skipped: 2 });
    expect(await send('q', [8])).toEqual({ storedTo: 8, skipped: 5 });
    expect(await send('q', [8])).toEqual({ storedTo: 8, skipped: 5 });
    expect(await send('r', [1])).toEqual({ storedTo: 1, skipped: 0 });
    expect(await stored()).toEqual([3, 4, 8, 1]);
    const other = await sync({ device: second, records: numbered(1), queue: { name: 'q', seq: 1 } });
    expect(other.queue).toEqual({ storedTo: 1, skipped: 0 });
    const largest = 2 ** 48 - 2;
    expect(await send('s', [largest, largest + 1])).toEqual({ storedTo: largest + 1, skipped: largest - 1 });
  });

  it('D30: without records a queue says where it stands, and nothing is written', async () => {
    await store.create(device);
    const ask = async (name: string) => (await sync({ queue: { name, seq: 9 } })).queue;
    expect(await ask('q')).toEqual({ storedTo: 0, skipped: 0 });
    await send('q', [1, 2]);
    expect(await ask('q')).toEqual({ storedTo: 2, skipped: 0 });
    expect(await ask('p')).toEqual({ storedTo: 0, skipped: 0 });
  });

  it('D30: the last 4 queues of a device are known, the one that moved longest ago goes first', async () => {
    await store.create(device);
    for (const name of ['a', 'b', 'c', 'd']) await send(name, [1, 2]);
    await send('a', [3]);
    await send('e', [1]);
    // `b` is a new one again.
    expect(await send('b', [1, 2])).toEqual({ storedTo: 2, skipped: 0 });
    expect(await send('a', [3])).toEqual({ storedTo: 3, skipped: 0 });
    expect(await send('d', [2])).toEqual({ storedTo: 2, skipped: 0 });
    expect(await stored()).toEqual([1, 2, 1, 2, 1, 2, 1, 2, 3, 1, 1, 2]);
  });

  it('D30: a device that is deleted takes its queues along', async () => {
    await store.create(device, namesake);
    await send('q', [1, 2]);
    await store.shard.devices.delete(device);
    expect((await send('q', [1, 2]))?.storedTo).toBe(2);
    await store.create(device);
    expect(await send('q', [1, 2])).toEqual({ storedTo: 2, skipped: 0 });
    expect(await stored()).toEqual([1, 2, 1, 2, 1, 2]);
  });

  it('D30: of many at once each number is stored once, in order', async () => {
    await store.create(device);
    const sent = range(0, 39).map((n) =>
      send('q', range(1, 5 + 5 * (n % 8)), n % 2 ? store.shard : store.elsewhere),
    );
    await Promise.all(sent);
    expect(await stored()).toEqual(range(1, 40));
  });

  it('D29: settlements come behind the records, each with its own outcome, and mail is read behind them', async () => {
    await store.create(device);
    const [first, next, third] = (await store.sendMany(device, 3)) as [Uint8Array, Uint8Array, Uint8Array];
    const unknown = generateUuid();
    const { settled, mailbox } = await sync({
      records: numbered(1),
      settlements: [
        { mailId: first, verb: 'ack' },
        { mailId: unknown, verb: 'ack' },
        { mailId: first, verb: 'ack' },
        { mailId: first, verb: 'reject' },
        { mailId: next, verb: 'requeue', fetched: { count: 2, firstMs: 1_000 } },
        { mailId: next, verb: 'requeue' },
      ],
    });
    expect(settled).toEqual([
      { result: 'settled', mailboxSize: 2 },
      { result: 'not_found', mailboxSize: 2 },
      { result: 'settled', mailboxSize: 2 },
      { result: 'already_settled', mailboxSize: 2 },
      { result: 'settled', mailboxSize: 2 },
      { result: 'settled', mailboxSize: 2 },
    ]);
    expect(mailbox?.size).toBe(2);
    expect(mailbox?.mails.map(({ id }) => formatUuid(id))).toEqual([formatUuid(third)]);
    expect(await store.mailIds(device)).toEqual([third, next].map(formatUuid));
    const kinds = (await store.records()).map(({ kind }) => kind);
    expect(kinds.slice(kinds.indexOf('datapoint'))).toEqual(['datapoint', 'receipt', 'receipt', 'receipt']);
    expect(await stored()).toEqual([1]);
  });

  it('D29: as much mail is read as was asked for', async () => {
    await store.create(device);
    const ids: string[] = [];
    for (const n of range(1, 20)) {
      ids.push(formatUuid(await store.send(device, { payload: payloadOf({ text: 'x'.repeat(n) }) })));
    }
    const read = async (mailsMax: number, bytesMax: number, records = numbered()): Promise<string[]> => {
      const { mailbox } = await sync({ mail: { mailsMax, bytesMax }, records });
      expect(mailbox?.size).toBe(20);
      return mailbox?.mails.map(({ id }) => formatUuid(id)) ?? [];
    };
    for (const records of [numbered(), numbered(1)]) {
      expect(await read(16, 65_536, records)).toEqual(ids.slice(0, 16));
      expect(await read(3, 65_536, records)).toEqual(ids.slice(0, 3));
      expect(await read(0, 65_536, records)).toEqual([]);
      // `{"text":"x"}` has 12 bytes, the next one 13.
      expect(await read(16, 25, records)).toEqual(ids.slice(0, 2));
      expect(await read(16, 24, records)).toEqual(ids.slice(0, 1));
      expect(await read(16, 11, records)).toEqual([]);
      expect(await read(1, 12, records)).toEqual(ids.slice(0, 1));
      expect(await read(1, 11, records)).toEqual([]);
    }
    const { mailbox } = await sync({ device: second });
    expect(mailbox).toEqual({ size: 0, mails: [] });
  });

  it('D29: what is read of mail is all that there is of it, also of one that was requeued', async () => {
    await store.create(device);
    const id = await store.send(device, { payload: Buffer.from('{ "a":1.50,"a" : 2 }'), name: 'set' });
    await sync({ settlements: [{ mailId: id, verb: 'requeue' }] });
    const head = await store.shard.mail.head(device);
    for (const records of [numbered(), numbered(1)]) {
      expect((await sync({ records })).mailbox).toEqual({ size: 1, mails: [head.mail] });
    }
    expect(head.mail).toMatchObject({ name: 'set', requeueCount: 1 });
  });

  it('after it is closed, a sync is refused as unavailable', async () => {
    await store.shard.devices.create([newDevice(device)]);
    await store.opened.close();
    await expect(sync({ records: numbered(1) })).rejects.toMatchObject({ code: 'unavailable' });
  });
});
