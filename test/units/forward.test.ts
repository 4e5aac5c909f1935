import { expect, it } from 'vitest';
import type { DeviceKey } from '../../src/core/identity.ts';
import { createLog } from '../../src/core/log.ts';
import { generateUuid } from '../../src/core/uuid.ts';
import { waitOf } from '../../src/forward/backoff.ts';
import { ByteBudget } from '../../src/forward/byte-budget.ts';
import { Lane } from '../../src/forward/lane.ts';
import { Progress } from '../../src/forward/progress.ts';
import type { Outcome, Sender } from '../../src/forward/sender.ts';
import type { Source } from '../../src/forward/source.ts';
import { isHostAllowed } from '../../src/registry/forward-hosts.ts';
import type { Forwarder } from '../../src/registry/forwarder.ts';
import type { StoredRecord } from '../../src/shard/shard.ts';

it('forwardHosts allows names, names below one, addresses, or any', () => {
  const allowed = 'hooks.example.com, *.inner.example, 10.0.0.5, [::1]';
  const hosts = ['hooks.example.com', 'HOOKS.example.com.', 'a.b.inner.example', '10.0.0.5', '[::1]'];
  for (const host of hosts) expect(isHostAllowed(host, allowed), host).toBe(true);
  const others = [
    'example.com',
    'inner.example',
    'evilinner.example',
    'hooks.example.com.evil.org',
    '10.0.0.50',
  ];
  for (const host of others) expect(isHostAllowed(host, allowed), host).toBe(false);
  expect(isHostAllowed('anything', ' ')).toBe(true);
});

it('waits double up to a bound, are spread, and are as long as the receiver asks within it', () => {
  const limits = { firstMs: 100, longestMs: 10_000 };
  for (const [attempt, nominal] of [
    [1, 100],
    [2, 200],
    [5, 1_600],
    [50, 10_000],
  ] as const) {
    const waits = Array.from({ length: 100 }, () => waitOf(attempt, limits));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(nominal / 2);
    expect(Math.max(...waits)).toBeLessThanOrEqual(nominal);
    expect(new Set(waits).size).toBeGreaterThan(1);
  }
  expect(waitOf(1, limits, 5_000)).toBe(5_000);
  expect(waitOf(1, limits, 1e9)).toBe(10_000);
});

/** Records of 1,000 bytes, the first ones of which are given again until they are acknowledged. */
class Records implements Source {
  readonly asked: number[] = [];
  at = 0;

  async fetch(recordsMax: number, signal: AbortSignal) {
    this.asked.push(recordsMax);
    if (this.at > 0) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return undefined;
    }
    const record: StoredRecord = {
      position: 0,
      id: generateUuid(),
      device: 'FLEET001DEVICE0001' as DeviceKey,
      kind: 'datapoint',
      schema: 'reading',
      payload: Buffer.alloc(1_000),
      storedAtMs: 0,
      isMoved: false,
    };
    return {
      records: Array.from({ length: Math.min(3, recordsMax) }, () => record),
      acknowledge: async () => {
        this.at += 1;
      },
      release: () => {},
    };
  }
}

it('a lane that waits for another attempt lets go of its bytes for one that needs them, and sends the same batch then', async () => {
  const budget = new ByteBudget(4_000);
  const stop = new AbortController();
  const progress = new Progress();
  const lane = (sender: Sender['send'], source: Source, retryMs: number): Lane =>
    new Lane({
      forwarder: {
        fleetId: 'FLEET001',
        name: 'one',
        batchRecordsMax: 100,
        lingerMilliseconds: 0,
      } as Forwarder,
      source,
      sender: { send: sender, close: async () => {} },
      budget,
      backoff: { firstMs: retryMs, longestMs: retryMs },
      progress,
      log: createLog('silent'),
      bury: async () => true,
      signal: stop.signal,
    });
  const failing = new Records();
  let isMended = false;
  const failed: Outcome = { result: 'failed', reason: 'not now' };
  const slow = lane(async () => (isMended ? { result: 'delivered' } : failed), failing, 300).run();
  await expect.poll(() => progress.backingOff).toBe(1);
  const well = new Records();
  const quick = lane(async () => ({ result: 'delivered' }), well, 10).run();
  // It would else have waited until the other one is mended.
  await expect.poll(() => well.at, { timeout: 5_000 }).toBe(1);
  isMended = true;
  await expect.poll(() => failing.at, { timeout: 5_000 }).toBe(1);
  expect(failing.asked.slice(0, 2)).toEqual([100, 3]);
  stop.abort();
  await Promise.all([slow, quick]);
  expect(progress).toMatchObject({ backingOff: 0, held: 0, counts: { delivered: 6, dead: 0 } });
});
