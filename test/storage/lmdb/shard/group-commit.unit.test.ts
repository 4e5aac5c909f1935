import { renameSync } from 'node:fs';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../../src/core/identity.ts';
import { createLog } from '../../../../src/core/telemetry/log.ts';
import { ConnectedDevices } from '../../../../src/domain/connected-devices.ts';
import type { Ingest } from '../../../../src/domain/records/record.ts';
import type { Completion } from '../../../../src/domain/write.ts';
import { DeviceVersions, versionsBytes } from '../../../../src/storage/lmdb/devices/device-versions.ts';
import { Environment } from '../../../../src/storage/lmdb/environment/environment.ts';
import { keyOfDevice } from '../../../../src/storage/lmdb/layout/keys.ts';
import { openTables, type Tables, tableNames } from '../../../../src/storage/lmdb/layout/tables.ts';
import { readLog } from '../../../../src/storage/lmdb/log/ingest-log.ts';
import { encodeLogRecord } from '../../../../src/storage/lmdb/log/log-record.ts';
import { GroupCommit } from '../../../../src/storage/lmdb/shard/group-commit.ts';
import { LmdbShard } from '../../../../src/storage/lmdb/shard/lmdb-shard.ts';
import { ShardState } from '../../../../src/storage/lmdb/shard/state.ts';
import type { Write, WriteAnswer } from '../../../../src/storage/lmdb/shard/write.ts';
import { temporaryFolder } from '../../../harness/server/server.ts';
import { until } from '../../../harness/server/vitals.ts';
import { openEnvironment } from '../../../harness/storage/environment.ts';
import { openReadingShard } from '../../../harness/storage/reading-shard.ts';

const mapBytesMax = 16 * 1024 * 1024;
const device = deviceKeyOf('FLEET001', 'DEVICE0001');

let environment: Environment;
let tables: Tables;
let commits: GroupCommit;
let state: ShardState;
let batches: number[];
type Step = 'collect' | 'rollback' | 'raise' | 'effects';
/** Steps around a transaction that throw, each time that they run. */
const failing = new Set<Step>();
function fail(step: Step): void {
  if (failing.has(step)) throw new Error(`${step} fails`);
}

const versions = new (class extends DeviceVersions {
  override raise(raised: DeviceKey): void {
    fail('raise');
    super.raise(raised);
  }
})(new Int32Array(new SharedArrayBuffer(versionsBytes)));
const depth = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

beforeEach(() => {
  Atomics.store(depth, 0, 0);
  environment = openEnvironment(temporaryFolder(), tableNames, mapBytesMax);
  tables = openTables(environment);
  batches = [];
  failing.clear();
  state = new (class extends ShardState {
    override rollback(): void {
      fail('rollback');
      super.rollback();
    }
  })(tables, {
    idempotencyWindowSeconds: 3_600,
    settings: { current: { idempotencySkewSeconds: 300 } },
    clockJumpGraceSeconds: 3_600,
    delayedMailsPerDeviceMax: 100,
    receiptRetentionSeconds: 86_400,
    deadLetterRetentionSeconds: 86_400,
    deadLettersPerFleetMax: 1_000,
  });
  commits = new GroupCommit({
    environment,
    state,
    versions,
    depth,
    metrics: {
      committed: (writes) => batches.push(writes),
      failed: () => {},
      refused: () => {},
      recovered: () => {},
    },
    log: createLog('silent'),
    commitDelayMilliseconds: 0,
    collect: () => fail('collect'),
    onEffects: () => fail('effects'),
  });
});
afterEach(async () => {
  await commits.drain();
  await environment.close();
});

/** Counted as a shard's queue counts it. */
function submit(write: Write): Promise<unknown> {
  Atomics.add(depth, 0, 1);
  return new Promise((resolve, reject) => commits.submit(write, { resolve, reject }));
}

function ingest(payload: string, from: DeviceKey = device): Promise<unknown> {
  const record = encodeLogRecord({
    device: from,
    kind: 'datapoint',
    schema: 'reading',
    payload: Buffer.from(payload),
  });
  return submit({ type: 'ingest', params: { device: from, record } });
}

function payloads(): string[] {
  environment.refresh();
  return [...readLog(tables.log)].map(({ payload }) => payload.toString());
}

it('writes of one turn share one transaction, in their order', async () => {
  await Promise.all(['1', '2', '3'].map((payload) => ingest(payload)));
  await ingest('4');
  expect(batches).toEqual([3, 1]);
  expect(payloads()).toEqual(['1', '2', '3', '4']);
});

it('a poisoned record fails its own write alone; the others of the batch are stored once', async () => {
  await environment.write(() => {
    tables.mailboxes.putSync(keyOfDevice(device), Buffer.from([1]));
  });
  const mailId = Buffer.alloc(16, 7);
  const results = await Promise.allSettled([
    ingest('before'),
    submit({ type: 'settle', params: { device, mailId, verb: 'ack' } }),
    ingest('after'),
  ]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(results[1]).toMatchObject({ reason: { code: 'internal_error' } });
  expect(payloads()).toEqual(['before', 'after']);
});

it('one write more, or one byte more, than the queue holds is refused, and the queue empties', async () => {
  const settings = { current: { shardQueueMax: 1_000, shardQueueBytesMax: 1_000_000 } };
  const depthBytes = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const owner = {
    write: (write: Write, completion: Completion<WriteAnswer>) => commits.submit(write, completion),
    subscribe: () => Promise.reject(new Error('not here')),
    presence: new ConnectedDevices(),
  };
  const shard = new LmdbShard({
    environment,
    versions,
    owner,
    depth: { writes: depth, bytes: depthBytes },
    settings,
  });
  const params: Ingest = { device, kind: 'datapoint', schema: 'reading', payload: Buffer.from('{}') };
  const waiting = Array.from({ length: 1_000 }, () => shard.log.append(params));
  expect(shard.accepts()).toBe(false);
  await expect(shard.log.append(params)).rejects.toMatchObject({ code: 'unavailable' });
  await Promise.all(waiting);
  await commits.drain();
  expect(shard.accepts()).toBe(true);
  expect(payloads()).toHaveLength(1_000);

  const large: Ingest = { ...params, payload: Buffer.alloc(60_000, 'x') };
  const larger = Array.from({ length: 17 }, () => shard.log.append(large));
  expect(shard.accepts()).toBe(false);
  await expect(shard.log.append(params)).rejects.toMatchObject({ code: 'unavailable' });
  await Promise.all(larger);
  await commits.drain();
  expect([shard.accepts(), Atomics.load(depthBytes, 0)]).toEqual([true, 0]);
});

it('a full map refuses what adds records, and takes the rest; what is there stays readable', async () => {
  const large = 'x'.repeat(60_000);
  let stored = 0;
  let refusal: unknown;
  const endMs = Date.now() + 30_000;
  while (refusal === undefined && Date.now() < endMs) {
    await ingest(large).then(
      () => {
        stored += 1;
      },
      (error: unknown) => {
        refusal = error;
      },
    );
  }
  expect(refusal).toMatchObject({ code: 'unavailable', options: { retryAfterSeconds: 30 } });
  expect(stored).toBeGreaterThan(200);
  const settle = submit({ type: 'settle', params: { device, mailId: Buffer.alloc(16), verb: 'ack' } });
  await expect(settle).resolves.toMatchObject({ result: 'not_found' });
  expect(openReadingShard(environment, versions).mail.size(device)).toBe(0);
  expect(payloads()).toHaveLength(stored);
});

const settle = (): Write => ({ type: 'settle', params: { device, mailId: Buffer.alloc(16), verb: 'ack' } });

it.each<Step>(['collect', 'raise', 'effects'])(
  'what throws around a transaction (%s) keeps no write from its answer, nor any later one',
  async (step) => {
    failing.add(step);
    const both = Promise.all([submit(settle()), ingest('1')]);
    await expect(both).resolves.toMatchObject([{ result: 'not_found' }, 'stored']);
    failing.clear();
    await ingest('2');
    await commits.drain();
    expect([payloads(), Atomics.load(depth, 0)]).toEqual([['1', '2'], 0]);
  },
);

it('an answer that cannot be given keeps no other from its own', async () => {
  const answered = ingest('1');
  Atomics.add(depth, 0, 1);
  const throws = (): never => {
    throw new Error('the thread is gone');
  };
  commits.submit(settle(), { resolve: throws, reject: throws });
  await Promise.all([answered, ingest('2')]);
  await commits.drain();
  expect([payloads(), Atomics.load(depth, 0)]).toEqual([['1', '2'], 0]);
});

it('a rollback that fails refuses its batch, and every one until it succeeds; nothing of them is stored', async () => {
  await environment.write(() => {
    tables.mailboxes.putSync(keyOfDevice(device), Buffer.from([1]));
  });
  failing.add('rollback');
  const refused = await Promise.allSettled([ingest('1'), submit(settle())]);
  expect(refused).toMatchObject([{ reason: { code: 'unavailable' } }, { reason: { code: 'unavailable' } }]);
  await expect(ingest('2')).rejects.toMatchObject({ code: 'unavailable' });
  failing.clear();
  await until(() =>
    ingest('3').then(
      () => true,
      () => false,
    ),
  );
  await commits.drain();
  expect([payloads(), Atomics.load(depth, 0)]).toEqual([['3'], 0]);
});

it('free space that cannot be found out, its folder being away, refuses nothing, and is said once', async () => {
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const folder = temporaryFolder();
  const counter = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const limits = { mapBytesMax, diskFreeBytesMin: 1, readersMax: 8 };
  const own = new Environment({ path: folder, tables: tableNames, ...limits, commits: counter, log });
  try {
    const away = `${folder}-away`;
    renameSync(folder, away);
    expect(own.hasDisk()).toBe(true);
    expect([own.hasDiskToGrow(), lines.length]).toEqual([true, 1]);
    renameSync(away, folder);
  } finally {
    await own.close();
  }
});
