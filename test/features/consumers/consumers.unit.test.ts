import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { type DeviceKey, fleetIdOf } from '../../../src/core/identity.ts';
import { createLog } from '../../../src/core/telemetry/log.ts';
import type { StoredRecord } from '../../../src/domain/records/record.ts';
import type { Consumer, ConsumerBatchRecords } from '../../../src/features/consumers/consumer.ts';
import { Consumers } from '../../../src/features/consumers/consumers.ts';
import { LogFollower } from '../../../src/features/records/log-follower.ts';
import { openControl } from '../../../src/maintenance/environments.ts';
import { countOf } from '../../../src/storage/lmdb/log/log-batch.ts';
import { type OpenShard, openShard } from '../../harness/storage/shard.ts';
import { trimLog } from '../../harness/storage/trim.ts';

const fleetId = 'FLEET001';
const devices = ['FLEET001DEVICE0001', 'FLEET001DEVICE0002', 'FLEET002DEVICE0001'] as DeviceKey[];
const shardsCount = 2;
const limits = { mapBytesMax: 1024 ** 3, diskFreeBytesMin: 1 };

type Operation =
  | { type: 'store'; shard: number; records: { device: number; isMessage: boolean; schema: string }[] }
  | { type: 'fetch'; max: number }
  | { type: 'acknowledge' | 'release'; batch: number }
  | { type: 'trim'; shard: number; batches: number }
  | { type: 'pause' | 'resume' | 'restart' };

const shard = fc.nat({ max: shardsCount - 1 });
const stored = fc.record({
  device: fc.nat({ max: devices.length - 1 }),
  isMessage: fc.boolean(),
  schema: fc.constantFrom('opened', 'closed'),
});
const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('store' as const),
      shard,
      records: fc.array(stored, { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ type: fc.constant('fetch' as const), max: fc.integer({ min: 1, max: 5 }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constantFrom('acknowledge' as const, 'acknowledge' as const, 'release' as const),
      batch: fc.nat({ max: 8 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('trim' as const),
      shard,
      batches: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constantFrom('pause' as const, 'resume' as const, 'restart' as const) }),
  },
);

/** Model of the work of a consumer of messages, beside one that does it on real logs. */
class Bench {
  readonly #folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
  readonly #shards: OpenShard[] = [];
  #journal = openControl(join(this.#folder, 'control'), limits);
  #consumers: Consumers | undefined;
  readonly #acknowledged = new Set<string>();
  readonly #given: ConsumerBatchRecords[] = [];
  readonly #trimmed: number[] = [];
  #isPaused = false;

  async begin(): Promise<void> {
    for (let index = 0; index < shardsCount; index += 1) {
      this.#shards.push(openShard(join(this.#folder, String(index)), { commitDelayMilliseconds: 0 }));
    }
    await this.#open();
  }

  async #open(): Promise<void> {
    const follower = new LogFollower(
      this.#shards.map((one) => one.shard),
      createLog('silent'),
    );
    this.#consumers = await Consumers.open({
      follower,
      journal: this.#journal,
      log: createLog('silent'),
    });
    const settings = { kinds: ['message'] as const, schemas: [], leaseSeconds: 3_600 };
    await this.#consumers.put(fleetId, 'hall', settings, 'earliest');
  }

  get #consumer(): Consumer {
    return this.#consumers?.find(fleetId, 'hall') as Consumer;
  }

  /** Records still to be given of a shard, in order. */
  async #rest(index: number): Promise<StoredRecord[]> {
    const records: StoredRecord[] = [];
    for (let from = 0; ; ) {
      const page = await (this.#shards[index] as OpenShard).shard.log.read(from);
      if (page.next === from) break;
      records.push(...page.records);
      from = page.next;
    }
    return records.filter(
      ({ device, kind, id }) =>
        fleetIdOf(device) === fleetId && kind === 'message' && !this.#acknowledged.has(id.toString('hex')),
    );
  }

  async do(one: Operation): Promise<void> {
    switch (one.type) {
      case 'store':
        for (const { device, isMessage, schema } of one.records) {
          await (this.#shards[one.shard] as OpenShard).shard.log.append({
            device: devices[device] as DeviceKey,
            kind: isMessage ? 'message' : 'datapoint',
            schema,
            payload: Buffer.from('{}'),
          });
        }
        break;
      case 'fetch':
        await this.#fetch(one.max);
        break;
      case 'acknowledge':
      case 'release':
        await this.#settle(one.type, this.#given[one.batch % Math.max(1, this.#given.length)]);
        break;
      case 'trim': {
        const { environment } = this.#shards[one.shard] as OpenShard;
        // Records that somebody has in hand may be trimmed, and settled all the same.
        const log = environment.table('log');
        const keys = [...log.getKeys({})].slice(0, -1).slice(0, one.batches);
        for (const key of keys)
          this.#trimmed[one.shard] = (this.#trimmed[one.shard] ?? 0) + countOf(log.getBinary(key) as Buffer);
        await environment.write(() => {
          for (const key of keys) log.removeSync(key);
        });
        // Waits until pages that were read before are read anew.
        await wait(150);
        break;
      }
      case 'pause':
      case 'resume':
        await this.#pause(one.type === 'pause');
        break;
      case 'restart':
        await this.#consumers?.stop();
        await this.#journal.close();
        this.#journal = openControl(join(this.#folder, 'control'), limits);
        this.#given.length = 0;
        await this.#open();
    }
  }

  async #pause(isPaused: boolean): Promise<void> {
    await this.#consumers?.change(fleetId, 'hall', { enabled: !isPaused });
    this.#isPaused = isPaused;
  }

  async #fetch(max: number): Promise<void> {
    const options = { recordsMax: max, bytesMax: 1_000_000, worker: 'tester' };
    const batch = await this.#consumer.fetch(options, AbortSignal.abort());
    if (this.#isPaused) {
      expect(batch).toBeUndefined();
      return;
    }
    const rests = await Promise.all(this.#shards.map((_, index) => this.#rest(index)));
    if (batch === undefined) {
      // Nothing is left but in shards where a batch is out.
      const free = rests.filter((_, index) => !this.#given.some(({ shard }) => shard === index));
      expect(free.flat()).toEqual([]);
      return;
    }
    expect(this.#given.map(({ shard }) => shard)).not.toContain(batch.shard);
    const expected = (rests[batch.shard] ?? []).slice(0, max);
    expect(batch.records.map(({ position }) => position)).toEqual(expected.map(({ position }) => position));
    expect(batch.records.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
    this.#given.push(batch);
  }

  async #settle(how: 'acknowledge' | 'release', batch: ConsumerBatchRecords | undefined): Promise<void> {
    if (batch === undefined) return;
    if (how === 'acknowledge') {
      // Twice, as after an answer that was lost.
      await Promise.all([batch.acknowledge(), batch.acknowledge()]);
      await batch.acknowledge();
      for (const { id } of batch.records) this.#acknowledged.add(id.toString('hex'));
    } else expect(batch.release()).toBe(true);
    this.#given.splice(this.#given.indexOf(batch), 1);
    expect(batch.release()).toBe(false);
  }

  /** Gives back what is out, and everything that is left comes. */
  async drain(): Promise<void> {
    await this.#pause(false);
    for (const batch of [...this.#given]) await this.#settle('release', batch);
    const left = async (): Promise<number> =>
      (await Promise.all(this.#shards.map((_, index) => this.#rest(index)))).flat().length;
    while ((await left()) > 0) {
      const before = await left();
      await this.#fetch(3);
      await this.#settle('acknowledge', this.#given[0]);
      expect(await left()).toBeLessThan(before);
    }
    await this.#fetch(3);
    const status = await this.#consumer.status();
    // Trimmed records are lost but for what had been passed before.
    expect(status.every(({ lost }, index) => lost <= (this.#trimmed[index] ?? 0))).toBe(true);
    expect(status.map(({ behind, lease }) => ({ behind, lease }))).toEqual(
      this.#shards.map(() => ({ behind: 0, lease: undefined })),
    );
  }

  async end(): Promise<void> {
    await this.#consumers?.stop();
    await this.#journal.close();
    for (const one of this.#shards) await one.close();
    rmSync(this.#folder, { recursive: true });
  }
}

it('a consumer gives every wanted record until it is acknowledged, in the order of its log, to one at a time', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 40 }), async (operations) => {
      const bench = new Bench();
      try {
        await bench.begin();
        for (const one of operations) await bench.do(one);
        await bench.drain();
      } finally {
        await bench.end();
      }
    }),
    { numRuns: Number(process.env.CONSUMER_RUNS ?? 10) },
  );
});

it('what retention took in front of a consumer and out of the middle counts as lost, once, and all of it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
  const opened = openShard(folder, { commitDelayMilliseconds: 0 });
  const journal = openControl(join(folder, 'control'), limits);
  const log = createLog('silent');
  const store = async (device: number, count: number): Promise<void> => {
    const record = { device: devices[device] as DeviceKey, kind: 'message' as const, schema: 'opened' };
    const payload = Buffer.from('{}');
    await Promise.all(Array.from({ length: count }, () => opened.shard.log.append({ ...record, payload })));
  };
  for (const device of [0, 2, 0, 2, 0]) await store(device, 10);
  const follower = new LogFollower([opened.shard], log);
  const consumers = await Consumers.open({ follower, journal, log });
  const settings = { kinds: [], schemas: [], leaseSeconds: 60 };
  await consumers.put(fleetId, 'hall', settings, 'earliest');
  await consumers.put('FLEET002', 'hall', settings, 'earliest');
  const fleets = new Map([['FLEET001', { ttlSeconds: 1 }]]);
  const nowMs = Date.now() + 60_000;
  await trimLog(opened.environment, { retention: { ttlSeconds: 3_600, fleets }, nowMs });
  const options = { recordsMax: 100, bytesMax: 1_000_000, worker: 'tester' };
  for (const [of, given] of [
    [fleetId, 10],
    ['FLEET002', 20],
  ] as const) {
    const consumer = consumers.find(of, 'hall') as Consumer;
    const fetch = async (): Promise<ConsumerBatchRecords | undefined> =>
      consumer.fetch(options, AbortSignal.abort());
    const first = await fetch();
    first?.release();
    const batch = await fetch();
    expect(batch?.records).toHaveLength(given);
    await batch?.acknowledge();
    expect((await consumer.status()).map(({ behind, lost }) => [behind, lost])).toEqual([[0, 20]]);
  }
  await consumers.stop();
  await journal.close();
  await opened.close();
  rmSync(folder, { recursive: true });
});

it('a stop that cannot store the last places says so', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
  const opened = openShard(folder, { commitDelayMilliseconds: 0 });
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const follower = new LogFollower([opened.shard], log);
  const control = join(folder, 'control');
  const journal = openControl(control, limits);
  const first = await Consumers.open({ follower, journal, log });
  await first.put(fleetId, 'hall', { kinds: [], schemas: [], leaseSeconds: undefined }, 'earliest');
  await first.stop();
  await journal.close();
  expect(lines).toEqual([]);

  // Nobody wants it, so that its place moves without an acknowledgement; and the disk is full.
  const [, , device] = devices as [DeviceKey, DeviceKey, DeviceKey];
  await opened.shard.log.append({ device, kind: 'message', schema: 'opened', payload: Buffer.from('{}') });
  const full = openControl(control, { ...limits, diskFreeBytesMin: Number.MAX_SAFE_INTEGER });
  const second = await Consumers.open({ follower, journal: full, log });
  const options = { recordsMax: 1, bytesMax: 1_000, worker: 'tester' };
  expect(await second.find(fleetId, 'hall')?.fetch(options, AbortSignal.abort())).toBeUndefined();
  await second.stop();
  expect(lines.join()).toContain('storing the last cursors failed');
  await full.close();
  await opened.close();
  rmSync(folder, { recursive: true });
});
