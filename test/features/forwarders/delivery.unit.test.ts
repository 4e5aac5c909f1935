import { expect, it } from 'vitest';
import type { DeviceKey } from '../../../src/core/identity.ts';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { generateUuid } from '../../../src/core/uuid.ts';
import { Hold } from '../../../src/domain/hold.ts';
import type { StoredRecord } from '../../../src/domain/records/record.ts';
import {
  isHostAllowed,
  isMetadataAddress,
} from '../../../src/features/forwarders/declaration/forward-hosts.ts';
import type { Forwarder } from '../../../src/features/forwarders/declaration/forwarder.ts';
import { ByteBudget } from '../../../src/features/forwarders/delivery/byte-budget.ts';
import {
  backoffMs,
  DeliveryLoop,
  ForwarderStats,
} from '../../../src/features/forwarders/delivery/delivery-loop.ts';
import type { Source } from '../../../src/features/forwarders/delivery/source.ts';
import { allowedLookup, lookupOf } from '../../../src/features/forwarders/senders/allowed-lookup.ts';
import type { Outcome, Sender } from '../../../src/features/forwarders/senders/sender.ts';

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

it('metadata addresses are no hosts that anybody may send to, however they are written, unless they are named', () => {
  const urls = [
    'http://169.254.169.254/latest',
    'http://2852039166/',
    'http://0xa9fea9fe/',
    'http://0251.0376.0251.0376/',
    'http://169.254.43518/',
    'http://[::ffff:169.254.169.254]/',
    'http://[::ffff:a9fe:a9fe]/',
    'http://[::169.254.169.254]/',
    'http://[64:ff9b::169.254.169.254]/',
    'http://[64:ff9b:1::169.254.169.254]/',
    'http://[64:ff9b:1:a9fe:a9:fe00::]/',
    'http://[64:ff9b:1:a9:fea9:fe::]/',
    'http://[64:ff9b:1:2:a9:fea9:fe00:0]/',
    'http://[64:ff9b:1:2:3:4:a9fe:a9fe]/',
    'http://[2002:a9fe:a9fe::]/',
    'http://[2002:a9fe:a9fe::1]/',
    'http://[2001:0:102:304::5601:5601]/',
    'http://[2001:0:a9fe:a9fe::1]/',
    'http://[::ffff:0:169.254.169.254]/',
    'http://[fe80::1]/',
    'http://[febf::1]/',
    'http://[fd00:ec2::254]/',
    'http://169.254.0.1./',
    ...['100.100.100.200', '192.0.0.192', '168.63.129.16'].flatMap((address) => [
      `http://${address}/`,
      `http://[::ffff:${address}]/`,
      `http://[::${address}]/`,
      `http://[64:ff9b::${address}]/`,
    ]),
    'http://[2002:6464:64c8::]/',
    'http://[fd20:ce::254]/',
    'http://[fd00:c1::a9fe:a9fe]/',
    'http://[fd00:a9fe:a9fe::1]/',
    'http://[fd00:42::42]/',
  ];
  for (const url of urls) expect(isHostAllowed(new URL(url).hostname, ''), url).toBe(false);
  expect(isHostAllowed('169.254.169.254', 'a.example, 169.254.169.254')).toBe(true);
  const others = [
    '169.253.0.1',
    '100.100.100.201',
    '192.0.0.191',
    '168.63.129.17',
    '[2002:6464:64c9::]',
    '[fd00:c1::1]',
    '10.0.0.1',
    '127.0.0.1',
    '[::1]',
    '[fd00:ec3::1]',
    '[fec0::1]',
    'a.example',
    '[2002:a00:1::1]',
    '[64:ff9b::a00:1]',
    '[2001:1::1]',
    '[2001:db8::a9fe:a9fe]',
  ];
  for (const host of others) expect(isHostAllowed(host, ''), host).toBe(true);
  expect([
    isMetadataAddress('fe80::1%eth0'),
    isMetadataAddress('::1'),
    isMetadataAddress('localhost'),
  ]).toEqual([true, false, false]);
});

it('a connection to a name is made to those of its addresses that may be sent to, and to no other', async () => {
  const addresses: Record<string, string[]> = {
    'metadata.example': ['169.254.169.254', 'fd00:ec2::254'],
    'mixed.example': ['169.254.1.1', '192.0.2.7', '2001:db8::1'],
  };
  const look = (host: string, all: boolean) =>
    new Promise((resolve) => {
      const system = allowedLookup((name, _, done) => {
        const found = (addresses[name] ?? []).map((address) => ({
          address,
          family: address.includes(':') ? 6 : 4,
        }));
        done(found.length === 0 ? Object.assign(new Error(), { code: 'ENOTFOUND' }) : null, found);
      }, false);
      system(host, { all }, (error, ...found) => resolve(error?.code ?? found));
    });
  expect(await look('metadata.example', true)).toBe('ERR_FORBIDDEN_ADDRESS');
  expect(await look('metadata.example', false)).toBe('ERR_FORBIDDEN_ADDRESS');
  expect(await look('mixed.example', false)).toEqual(['192.0.2.7', 4]);
  expect(await look('mixed.example', true)).toEqual([
    [
      { address: '192.0.2.7', family: 4 },
      { address: '2001:db8::1', family: 6 },
    ],
  ]);
  expect(await look('nowhere.example', true)).toBe('ENOTFOUND');
});

it('a fleet looks up one host at a time, the same host once for all who ask, and waits for no other fleet', async () => {
  const asked: string[] = [];
  const answers = new Map<string, () => void>();
  const system: Parameters<typeof lookupOf>[1] = (host, _, done) => {
    asked.push(host);
    answers.set(host, () => done(null, [{ address: '192.0.2.7', family: 4 }]));
  };
  const look = (fleetId: string, host: string) =>
    new Promise((resolve) => {
      lookupOf(fleetId, system)(host, { all: true }, (_, [first]) => resolve(first?.address));
    });
  const slow = ['a.example', 'b.example', 'a.example'].map((host) => look('GREEDY00', host));
  const other = look('MODEST00', 'c.example');
  await new Promise(setImmediate);
  expect(asked).toEqual(['a.example', 'c.example']);
  answers.get('c.example')?.();
  expect(await other).toBe('192.0.2.7');
  answers.get('a.example')?.();
  expect(await Promise.all([slow[0], slow[2]])).toEqual(['192.0.2.7', '192.0.2.7']);
  await new Promise(setImmediate);
  expect(asked).toEqual(['a.example', 'c.example', 'b.example']);
  answers.get('b.example')?.();
  expect(await slow[1]).toBe('192.0.2.7');
});

it('no fleet holds all the bytes of forwarders, and who waits is woken when he may have them', async () => {
  const budget = new ByteBudget(100);
  const { signal } = new AbortController();
  const takeAll = (owner: string): number => {
    let taken = 0;
    while (budget.take(owner, 10)) taken += 10;
    return taken;
  };
  expect(takeAll('a')).toBe(50);
  const woken: string[] = [];
  void budget.freed('a', 10, signal).then(() => woken.push('a'));
  expect(takeAll('b')).toBe(30);
  void budget.freed('c', 60, signal).then(() => woken.push('c'));
  void budget.freed('d', 30, signal).then(() => woken.push('d'));
  budget.release('b', 10);
  await expect.poll(() => woken).toEqual(['d']);
  for (let n = 0; n < 3; n += 1) budget.release('a', 10);
  await expect.poll(() => woken).toEqual(['d', 'a', 'c']);
  // More than there is, once nobody has any.
  for (const owner of ['a', 'a', 'b', 'b']) budget.release(owner, 10);
  expect(budget.take('e', 1_000)).toBe(true);
});

it('waits double up to a bound, are spread, and are as long as the receiver asks within it', () => {
  const limits = { firstMs: 100, longestMs: 10_000 };
  for (const [attempt, nominal] of [
    [1, 100],
    [2, 200],
    [5, 1_600],
    [50, 10_000],
  ] as const) {
    const waits = Array.from({ length: 100 }, () => backoffMs(attempt, limits));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(nominal / 2);
    expect(Math.max(...waits)).toBeLessThanOrEqual(nominal);
    expect(new Set(waits).size).toBeGreaterThan(1);
  }
  expect(backoffMs(1, limits, 5_000)).toBe(5_000);
  expect(backoffMs(1, limits, 1e9)).toBe(10_000);
});

/** Records of 1,000 bytes, the first ones of which are given again until they are acknowledged. */
class Records implements Source {
  readonly asked: number[] = [];
  at = 0;
  readonly #records = [0, 1, 2].map(
    (position): StoredRecord => ({
      position,
      id: generateUuid(),
      device: 'FLEET001DEVICE0001' as DeviceKey,
      kind: 'datapoint',
      schema: 'reading',
      payload: Buffer.alloc(1_000),
      storedAtMs: 0,
      isRelocated: false,
    }),
  );

  async fetch(recordsMax: number, signal: AbortSignal) {
    this.asked.push(recordsMax);
    if (this.at > 0) {
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return undefined;
    }
    return {
      records: this.#records.slice(0, recordsMax),
      acknowledge: async () => {
        this.at += 1;
      },
      release: () => {},
    };
  }
}

interface LoopInput {
  send: Sender['send'];
  source: Source;
  backoff: { firstMs: number; longestMs: number };
  stats: ForwarderStats;
  signal: AbortSignal;
  budget?: ByteBudget;
}

function runLoop({ send, budget = new ByteBudget(1_000_000), ...input }: LoopInput): Promise<void> {
  const forwarder = { fleetId: 'FLEET001', name: 'one', batchRecordsMax: 100, lingerMilliseconds: 0 };
  return new DeliveryLoop({
    ...input,
    // A loop reads no more of it.
    forwarder: forwarder as Forwarder,
    budget,
    sender: { send, close: async () => {} },
    log: createLog('silent'),
    deadLetter: async () => 'stored',
    hold: new Hold(),
  }).run();
}

it('a delivery loop in backoff releases its bytes to one that needs them, and sends the same batch again', async () => {
  const budget = new ByteBudget(4_000);
  const stop = new AbortController();
  const stats = new ForwarderStats();
  const loop = (send: Sender['send'], source: Source, retryMs: number): Promise<void> =>
    runLoop({
      send,
      source,
      backoff: { firstMs: retryMs, longestMs: retryMs },
      stats,
      signal: stop.signal,
      budget,
    });
  const failing = new Records();
  let isMended = false;
  const failed: Outcome = { result: 'failed', reason: 'not now' };
  const slow = loop(async () => (isMended ? { result: 'delivered' } : failed), failing, 300);
  await expect.poll(() => stats.nextAttempts.size).toBe(1);
  const well = new Records();
  const quick = loop(async () => ({ result: 'delivered' }), well, 10);
  // It would else have waited until the other one is mended.
  await expect.poll(() => well.at).toBe(1);
  isMended = true;
  await expect.poll(() => failing.at).toBe(1);
  expect(failing.asked.slice(0, 2)).toEqual([100, 3]);
  stop.abort();
  await Promise.all([slow, quick]);
  expect(stats.nextAttempts.size).toBe(0);
  expect(stats).toMatchObject({ blocked: 0, counts: { delivered: 6, dead: 0 } });
});

it.each([false, true])(
  'a record that fails alone backs off before it is a dead letter; interrupted: %s',
  async (isInterrupted) => {
    const stop = new AbortController();
    const stats = new ForwarderStats();
    const source = new Records();
    const budget = new ByteBudget(5_000);
    const alone: number[] = [];
    const send: Sender['send'] = async (records) => {
      const isPoisoned = records.some(({ position }) => position === 1);
      const isAlone = isPoisoned && records.length === 1;
      if (isAlone) alone.push(performance.now());
      // Another loop needs the bytes meanwhile.
      if (isAlone && alone.length === 3 && isInterrupted) void budget.freed('OTHER001', 4_000, stop.signal);
      return isPoisoned
        ? { result: 'failed', reason: 'status 500', isAnswer: true }
        : { result: 'delivered' };
    };
    const backoff = { firstMs: 20, longestMs: 10_000 };
    const run = runLoop({ send, source, backoff, stats, signal: stop.signal, budget });
    await expect.poll(() => source.at).toBe(1);
    stop.abort();
    await run;
    expect(stats.counts.dead).toBe(1);
    // Once in the bisection, which is done again after an interruption, and four times more.
    expect(alone).toHaveLength(isInterrupted ? 6 : 5);
    if (isInterrupted) return;
    const waits = alone.slice(1).map((atMs, i) => atMs - (alone[i] ?? 0));
    // A wait is at least half of what it doubles to.
    for (const [i, wait] of waits.entries()) expect(wait).toBeGreaterThan(10 * 2 ** i - 2);
  },
);
