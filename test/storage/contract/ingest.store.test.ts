/** Contract of `Shard`: records that come in, and their idempotency keys. */

import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { DeviceKey } from '../../../src/core/identity.ts';
import { generateUuid } from '../../../src/core/uuid.ts';
import type { Ingest, IngestOutcome } from '../../../src/domain/records/record.ts';
import type { Shard } from '../../../src/domain/shard.ts';
import { engines } from './engine.ts';
import { device, digestOf, payloadOf, second, useStore } from './store.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

describe.each(engines)('ingest on $name', (engine) => {
  const store = useStore(engine);

  function ingest(more: Partial<Ingest> = {}, by: Shard = store.shard): Promise<IngestOutcome> {
    return by.log.append({ device, kind: 'datapoint', schema: 'reading', payload: payloadOf({}), ...more });
  }

  /** Ingests with a key of that age. */
  function keyed(key: Buffer, digest = 1, of: DeviceKey = device, by = store.shard): Promise<IngestOutcome> {
    return ingest({ device: of, idempotency: { key, digest: digestOf(digest) } }, by);
  }

  const count = async (): Promise<number> => (await store.records()).length;

  it('D11, D19, D25: what is stored is a record as it was sent, byte for byte, also after a restart', async () => {
    const sent: Partial<Ingest>[] = [
      { kind: 'datapoint', schema: 'reading', payload: Buffer.from('{ "a":1.50,"a" : 2 }') },
      { kind: 'message', schema: 'a'.repeat(255), payload: Buffer.from('{"é":12345678901234567890}') },
      { kind: 'message', schema: '_-0', payload: Buffer.from('{}'), device: second },
      { kind: 'datapoint', schema: 'late', payload: Buffer.from('{}'), recordedAtMs: 1_700_000_000_123 },
      { kind: 'datapoint', schema: 'large', payload: randomBytes(65_536) },
    ];
    const beforeMs = Date.now();
    for (const one of sent) expect(await ingest(one)).toBe('stored');
    for (const isReopened of [false, true]) {
      if (isReopened) await store.reopen();
      const records = await store.records();
      expect(records).toHaveLength(sent.length);
      for (const [index, { payload = Buffer.alloc(0), ...one }] of sent.entries()) {
        const record = records[index];
        expect(record).toMatchObject({ device, isRelocated: false, ...one });
        expect(record?.recordedAtMs).toBe(one.recordedAtMs);
        expect(record?.payload.equals(payload)).toBe(true);
        expect(Math.abs((record?.storedAtMs ?? 0) - beforeMs)).toBeLessThan(hourMs);
        expect(record?.id.subarray(6, 7)[0]).toBeGreaterThanOrEqual(0x70);
      }
      expect(new Set(records.map(({ id }) => id.toString('hex'))).size).toBe(sent.length);
    }
  });

  it('the payload is copied when the call returns', async () => {
    const payload = Buffer.from('{"sent":true}');
    const storing = ingest({ payload });
    payload.fill(0);
    await storing;
    expect((await store.records())[0]?.payload.toString()).toBe('{"sent":true}');
  });

  it('each of many at once is stored once, and nobody looks for the device: who asks has admitted it', async () => {
    const sent = Array.from({ length: 300 }, (_, n) => `{"n":${n}}`);
    const outcomes = await Promise.all(
      sent.map((payload, n) =>
        ingest({ payload: Buffer.from(payload) }, n % 2 ? store.shard : store.elsewhere),
      ),
    );
    expect(new Set(outcomes)).toEqual(new Set(['stored']));
    await expect.poll(count).toBe(300);
    const payloads = (await store.records()).map(({ payload }) => payload.toString());
    expect(payloads.sort()).toEqual(sent.sort());
  });

  it('without a key nothing is a replay', async () => {
    for (const _ of [1, 2]) expect(await ingest()).toBe('stored');
    expect(await count()).toBe(2);
  });

  it('D18: a key that comes again stores nothing: a replay for the same, refused for anything else', async () => {
    const key = generateUuid();
    expect(await keyed(key)).toBe('stored');
    for (const isReopened of [false, true]) {
      if (isReopened) await store.reopen();
      expect(await keyed(key)).toBe('replayed');
      expect(await keyed(key, 2)).toBe('key_reused');
      expect(await keyed(key)).toBe('replayed');
    }
    expect(await keyed(key, 1, device, store.elsewhere)).toBe('replayed');
    expect(await count()).toBe(1);
  });

  it('D18: a key is the device’s own', async () => {
    const key = generateUuid();
    expect(await keyed(key)).toBe('stored');
    expect(await keyed(key, 2, second)).toBe('stored');
    expect(await keyed(key, 1, second)).toBe('key_reused');
    expect(await count()).toBe(2);
  });

  it('D18: of two at once one is stored, wherever they come in; the other is a replay or refused', async () => {
    for (let round = 0; round < 10; round += 1) {
      const same = generateUuid();
      const different = generateUuid();
      const shards = [store.shard, round % 2 ? store.shard : store.elsewhere];
      const replays = shards.map((shard) => keyed(same, 1, device, shard));
      const reuses = shards.map((shard, n) => keyed(different, n, device, shard));
      expect((await Promise.all(replays)).sort()).toEqual(['replayed', 'stored']);
      expect((await Promise.all(reuses)).sort()).toEqual(['key_reused', 'stored']);
    }
    await expect.poll(count).toBe(20);
  });

  it('D18: a key is at most 24 h old and 5 min ahead; one that is refused leaves no trace', async () => {
    const nowMs = Date.now();
    const old = generateUuid(nowMs - 24 * hourMs - minuteMs);
    const ahead = generateUuid(nowMs + 7 * minuteMs);
    expect(await keyed(old)).toBe('key_too_old');
    expect(await keyed(ahead)).toBe('key_ahead');
    expect(await keyed(generateUuid(nowMs - 24 * hourMs + 5 * minuteMs))).toBe('stored');
    expect(await keyed(generateUuid(nowMs + 4 * minuteMs))).toBe('stored');
    await store.reopen({ idempotencyWindowSeconds: 48 * 3_600, idempotencySkewSeconds: 600 });
    // For something else, and yet not for the first time.
    expect([await keyed(old, 2), await keyed(ahead, 2)]).toEqual(['stored', 'stored']);
    expect(await count()).toBe(4);
  });

  it('D18: a key that is remembered is answered whatever the window is now', async () => {
    const key = generateUuid(Date.now() - 90_000);
    expect(await keyed(key)).toBe('stored');
    await store.reopen({ idempotencyWindowSeconds: 60 });
    expect(await keyed(key)).toBe('replayed');
    expect(await keyed(key, 2)).toBe('key_reused');
  });

  it('D18: a key that is forgotten is not taken for a new one, even if the window should let it in again', async () => {
    const key = generateUuid(Date.now() - 12 * hourMs);
    expect(await keyed(key)).toBe('stored');
    await store.reopen({ idempotencyWindowSeconds: 60 });
    const seen = new Set<string>();
    await expect
      .poll(async () => {
        const outcome = await keyed(key);
        seen.add(outcome);
        return outcome;
      })
      .toBe('key_too_old');
    expect(seen).not.toContain('stored');
    await store.reopen({ idempotencyWindowSeconds: 86_400 });
    expect(await keyed(key)).toBe('key_too_old');
    expect(await keyed(generateUuid())).toBe('stored');
    expect(await count()).toBe(2);
  });
});
