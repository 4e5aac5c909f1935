import { afterEach, beforeEach, expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { ConnectedDevices } from '../../../src/domain/connected-devices.ts';
import type { Ingest } from '../../../src/domain/records/record.ts';
import type { Completion } from '../../../src/domain/write.ts';
import { DeviceVersions, versionsBytes } from '../../../src/storage/lmdb/devices/device-versions.ts';
import type { Environment } from '../../../src/storage/lmdb/environment/environment.ts';
import { keyOfDevice } from '../../../src/storage/lmdb/layout/keys.ts';
import { openTables, type Tables, tableNames } from '../../../src/storage/lmdb/layout/tables.ts';
import { readLog } from '../../../src/storage/lmdb/log/ingest-log.ts';
import { encodeLogRecord } from '../../../src/storage/lmdb/log/log-record.ts';
import { GroupCommit } from '../../../src/storage/lmdb/shard/group-commit.ts';
import { LmdbShard } from '../../../src/storage/lmdb/shard/lmdb-shard.ts';
import { ShardState } from '../../../src/storage/lmdb/shard/state.ts';
import type { Write, WriteAnswer } from '../../../src/storage/lmdb/shard/write.ts';
import { openEnvironment } from '../../harness/environment.ts';
import { openReadingShard } from '../../harness/reading-shard.ts';
import { temporaryFolder } from '../../harness/server.ts';

const mapBytesMax = 16 * 1024 * 1024;
const device = deviceKeyOf('FLEET001', 'DEVICE0001');

let environment: Environment;
let tables: Tables;
let commits: GroupCommit;
let batches: number[];
const versions = new DeviceVersions(new Int32Array(new SharedArrayBuffer(versionsBytes)));
const depth = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

beforeEach(() => {
  Atomics.store(depth, 0, 0);
  environment = openEnvironment(temporaryFolder(), tableNames, mapBytesMax);
  tables = openTables(environment);
  batches = [];
  commits = new GroupCommit({
    environment,
    state: new ShardState(tables, {
      idempotencyWindowSeconds: 3_600,
      settings: { current: { idempotencySkewSeconds: 300 } },
      clockJumpGraceSeconds: 3_600,
      delayedMailsPerDeviceMax: 100,
      receiptRetentionSeconds: 86_400,
      deadLetterRetentionSeconds: 86_400,
      deadLettersPerFleetMax: 1_000,
    }),
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
    collect: () => {},
    onEffects: () => {},
  });
});
afterEach(async () => {
  await commits.drain();
  await environment.close();
});

function submit(write: Write): Promise<unknown> {
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
