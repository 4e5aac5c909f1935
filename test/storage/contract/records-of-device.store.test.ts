/** Contract of `Shard`: the records of one device. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DeviceKey } from '../../../src/core/identity.ts';
import type { DeviceSpan, StoredRecord } from '../../../src/domain/records/record.ts';
import type { Shard } from '../../../src/domain/shard.ts';
import { engines } from './engine.ts';
import { device, namesake, payloadOf, type Store, second, useStore } from './store.ts';

const owners = [device, second, namesake];
const all = { from: 0, to: Number.POSITIVE_INFINITY, isNewestFirst: false, recordsMax: 100 };

/** Reads page by page, as a reader does that goes on where it was. */
async function read(by: Shard, of: DeviceKey, span: Partial<DeviceSpan> = {}): Promise<StoredRecord[]> {
  const found: StoredRecord[] = [];
  const rest = { ...all, ...span };
  while (rest.from < rest.to) {
    const { records, next } = await by.log.ofDevice(of, rest);
    expect(records.length).toBeLessThanOrEqual(rest.recordsMax);
    found.push(...records);
    if (rest.isNewestFirst) rest.to = next;
    else rest.from = next;
  }
  return found;
}

/** Stores a record for each, some of them in one commit. */
async function append(store: Store, devices: readonly DeviceKey[], together = 4): Promise<void> {
  for (let from = 0; from < devices.length; from += together) {
    await Promise.all(
      devices.slice(from, from + together).map((of, n) => {
        const record = { device: of, kind: 'datapoint' as const, schema: 'reading' };
        return store.shard.log.append({ ...record, payload: payloadOf({ n: from + n }) });
      }),
    );
  }
}

describe.each(engines)('records of a device on $name', (engine) => {
  const store = useStore(engine);

  it('a device has its records alone, in the order that they were stored in, or newest first, wherever it is read', async () => {
    expect(await read(store.shard, device)).toEqual([]);
    expect(await read(store.shard, device, { isNewestFirst: true })).toEqual([]);
    await append(store, [device, second, second, device, namesake, device, second]);
    const records = await store.records();
    for (const of of owners) {
      const own = records.filter((one) => one.device === of);
      expect(await read(store.shard, of)).toEqual(own);
      expect(await read(store.shard, of, { isNewestFirst: true })).toEqual([...own].reverse());
      await expect.poll(() => read(store.elsewhere, of)).toEqual(own);
    }
  });

  it('what was answered is read at once, and a page has as many as are asked for', async () => {
    for (let count = 1; count <= 5; count += 1) {
      await append(store, [device, second]);
      const { records } = await store.shard.log.ofDevice(device, {
        ...all,
        isNewestFirst: true,
        recordsMax: 1,
      });
      expect(records).toEqual((await store.records()).filter((one) => one.device === device).slice(-1));
    }
  });

  it('large records are read by pages, each at least one', async () => {
    const payload = Buffer.alloc(700_000, 'x');
    for (let n = 0; n < 3; n += 1)
      await store.shard.log.append({ device, kind: 'message', schema: 'large', payload });
    for (const isNewestFirst of [false, true]) {
      const { records } = await store.shard.log.ofDevice(device, { ...all, isNewestFirst });
      expect([1, 2]).toContain(records.length);
      expect(await read(store.shard, device, { isNewestFirst })).toHaveLength(3);
    }
  });

  it('any commits, any part of the log, any size of pages, also after a restart and after retention', async () => {
    const owner = fc.constantFrom(...owners);
    const commits = fc.array(owner, { minLength: 1, maxLength: 30 });
    const part = fc.record({
      from: fc.double({ min: 0, max: 1, noNaN: true }),
      to: fc.double({ min: 0, max: 1, noNaN: true }),
      isNewestFirst: fc.boolean(),
      recordsMax: fc.integer({ min: 1, max: 9 }),
    });
    const check = async (span: { from: number; to: number; isNewestFirst: boolean; recordsMax: number }) => {
      const end = await store.shard.log.end();
      const [from, to] = [Math.floor(span.from * end), Math.ceil(span.to * end)];
      const records = await store.records();
      for (const of of owners) {
        const own = records.filter((one) => one.device === of && one.position >= from && one.position < to);
        const found = await read(store.shard, of, { ...span, from, to });
        expect(found).toEqual(span.isNewestFirst ? own.reverse() : own);
      }
    };
    await fc.assert(
      fc.asyncProperty(commits, fc.integer({ min: 1, max: 9 }), part, async (devices, together, span) => {
        await append(store, devices, together);
        await check(span);
      }),
      { numRuns: 15 },
    );
    await store.reopen();
    await check({ from: 0, to: 1, isNewestFirst: true, recordsMax: 5 });
    const front = (await store.records())[0]?.position ?? 0;
    await store.reopen({ logRetentionSeconds: 0.001 });
    await expect
      .poll(async () => (await store.shard.log.read(0)).records[0]?.position ?? Number.POSITIVE_INFINITY)
      .toBeGreaterThan(front);
    await store.reopen({ logRetentionSeconds: 86_400 });
    for (const isNewestFirst of [false, true]) await check({ from: 0, to: 1, isNewestFirst, recordsMax: 5 });
  });
});
