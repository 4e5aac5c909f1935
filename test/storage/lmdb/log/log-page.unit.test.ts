import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { DeviceKey } from '../../../../src/core/identity.ts';
import { generateUuid } from '../../../../src/core/uuid.ts';
import type { StoredRecord } from '../../../../src/domain/records/record.ts';
import { DeviceVersions } from '../../../../src/storage/lmdb/devices/device-versions.ts';
import { Environment } from '../../../../src/storage/lmdb/environment/environment.ts';
import { sequenceKey } from '../../../../src/storage/lmdb/layout/keys.ts';
import { tableNames } from '../../../../src/storage/lmdb/layout/tables.ts';
import { IngestLog } from '../../../../src/storage/lmdb/log/ingest-log.ts';
import { encodeListedBatch } from '../../../../src/storage/lmdb/log/log-batch.ts';
import { encodeLogRecord } from '../../../../src/storage/lmdb/log/log-record.ts';
import { pack } from '../../../../src/storage/tables/codec.ts';
import { openEnvironment } from '../../../harness/storage/environment.ts';
import { openReadingShard } from '../../../harness/storage/reading-shard.ts';
import { trimLog } from '../../../harness/storage/trim.ts';

const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
const environment = openEnvironment(folder);
afterAll(async () => {
  await environment.close();
  rmSync(folder, { recursive: true });
});

const device = 'FLEET001DEVICE0001' as DeviceKey;
const log = environment.table('log');
const versions = new DeviceVersions(new Int32Array(new SharedArrayBuffer(65_536 * 4)));
const shard = openReadingShard(environment, versions);
const bytesOf = (payload: string): Buffer =>
  encodeLogRecord({ device, kind: 'message', schema: 'note', payload: Buffer.from(payload) });

/** One commit. */
async function ingest(...payloads: string[]): Promise<void> {
  await environment.write(() => {
    const writer = new IngestLog(log, Date.now);
    for (const payload of payloads) writer.append(bytesOf(payload));
    writer.flush();
  });
}

const payloads = (records: readonly StoredRecord[]): string[] =>
  records.map(({ payload }) => String(payload));

it('the log is read a commit at a time, from any position, and on from where it was trimmed', async () => {
  expect([shard.log.read(0), shard.log.end()]).toEqual([{ records: [], next: 0, damaged: false }, 0]);
  const beforeMs = Date.now();
  await ingest('{"n":0}', '{"n":1}', '{"n":2}');
  await ingest('{"n":3}');
  const first = shard.log.read(0);
  expect(first).toMatchObject({ next: 3, damaged: false });
  expect(payloads(first.records)).toEqual(['{"n":0}', '{"n":1}', '{"n":2}']);
  expect(first.records[1]).toMatchObject({
    position: 1,
    device,
    kind: 'message',
    schema: 'note',
    isRelocated: false,
  });
  expect(first.records[1]?.storedAtMs).toBeGreaterThanOrEqual(beforeMs);
  expect(first.records[1]?.storedAtMs).toBeLessThanOrEqual(Date.now());
  const rest = shard.log.read(2);
  expect([payloads(rest.records), rest.records[0]?.position, rest.next]).toEqual([['{"n":2}'], 2, 3]);
  expect([payloads(shard.log.read(3).records), shard.log.read(3).next]).toEqual([['{"n":3}'], 4]);
  // Nothing yet, also when asked again; then something.
  for (let time = 0; time < 2; time += 1)
    expect(shard.log.read(4)).toEqual({ records: [], next: 4, damaged: false });
  await ingest('{"n":4}');
  expect([payloads(shard.log.read(4).records), shard.log.end()]).toEqual([['{"n":4}'], 5]);

  await trimLog(environment, { retention: {}, nowMs: Date.now() + 60_000 });
  expect(shard.log.read(0)).toMatchObject({ next: 5, records: [{ position: 4 }] });
});

it('records are dated by the wall clock, those of another shard by their own times', async () => {
  const newestMs = Date.now();
  const oldMs = newestMs - 5_000;
  const jumpsMs = 3_600_000;
  await environment.write(() => {
    const records = [newestMs, oldMs].map((timeMs, n) => ({
      id: generateUuid(),
      timeMs,
      isRelocated: n === 1,
      bytes: bytesOf(`{"moved":${n}}`),
    }));
    log.putSync(sequenceKey(5), encodeListedBatch(records, newestMs));
    const clock = { wallMs: 0, jumpsMs, aheadMs: 0, aheadSinceMs: 0 };
    environment.table('times').putSync(Buffer.from('clock'), pack(clock));
  });
  expect(shard.log.read(6)).toMatchObject({
    next: 7,
    records: [{ position: 6, isRelocated: true, storedAtMs: oldMs + jumpsMs }],
  });
  expect(shard.log.read(5).records[0]).toMatchObject({ isRelocated: false, storedAtMs: newestMs + jumpsMs });
});

it.each([
  ['cut off', (batch: Buffer) => batch.subarray(0, 5)],
  ['shorter than its records', (batch: Buffer) => batch.subarray(0, -3)],
  ['of an unknown format', (batch: Buffer) => Buffer.concat([Buffer.from([9]), batch.subarray(1)])],
  ['of other bytes', (batch: Buffer) => Buffer.alloc(batch.length, 0xff)],
])('a batch that is %s is passed over once, and no record behind it', async (_, damage) => {
  const end = shard.log.end();
  await ingest('{"lost":1}', '{"lost":2}');
  const sound = log.getBinary(sequenceKey(end)) as Buffer;
  await environment.write(() => log.putSync(sequenceKey(end), damage(sound)));
  const damaged = shard.log.read(end);
  expect(damaged).toMatchObject({ records: [], damaged: true });
  expect(damaged.next).toBeGreaterThan(end);
  expect(shard.log.read(damaged.next)).toEqual({ records: [], next: damaged.next, damaged: false });
  // The owner that runs still knows where it ended.
  const timeMs = Date.now();
  const append = { id: generateUuid(), timeMs, isRelocated: true, bytes: bytesOf('{"behind":1}') };
  await environment.write(() => log.putSync(sequenceKey(end + 2), encodeListedBatch([append], timeMs)));
  expect(payloads(shard.log.read(damaged.next).records)).toEqual(['{"behind":1}']);
});

it('what another thread has committed and not counted yet is never at the end of a log and missing in it', async () => {
  const path = join(folder, 'uncounted');
  const commits = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const own = new Environment({ path, tables: tableNames, mapBytesMax: 1024 ** 3, readersMax: 8, commits });
  try {
    const one = openReadingShard(own, versions);
    const append = (): Promise<void> =>
      own.write(() => {
        const writer = new IngestLog(own.table('log'), Date.now);
        writer.append(bytesOf('{}'));
        writer.flush();
      });
    await append();
    const end = one.log.end();
    await own.write(() => own.table('times').putSync(Buffer.from('other'), Buffer.of(1)));
    expect(one.log.read(end).next).toBe(end);
    // A commit is there for all threads before the one that made it has heard of it, and counts it.
    await append();
    Atomics.sub(commits, 0, 1);
    // A snapshot lives for a turn of the event loop: the next one has the commit.
    await new Promise((resolve) => setTimeout(resolve, 10));
    const now = one.log.end();
    expect(one.log.read(end).next).toBe(now);
  } finally {
    await own.close();
  }
});
