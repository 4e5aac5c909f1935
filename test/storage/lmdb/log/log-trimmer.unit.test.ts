import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { DeviceKey } from '../../../../src/core/identity.ts';
import { recordsFile } from '../../../../src/storage/lmdb/environment/database-file.ts';
import type { Environment } from '../../../../src/storage/lmdb/environment/environment.ts';
import { sequenceKey } from '../../../../src/storage/lmdb/layout/keys.ts';
import { openTables } from '../../../../src/storage/lmdb/layout/tables.ts';
import { endOfLog, IngestLog, readLog } from '../../../../src/storage/lmdb/log/ingest-log.ts';
import { countBatch, isCutBatch } from '../../../../src/storage/lmdb/log/log-batch.ts';
import { readLogPage } from '../../../../src/storage/lmdb/log/log-page.ts';
import { encodeLogRecord } from '../../../../src/storage/lmdb/log/log-record.ts';
import { storedLogBytes } from '../../../../src/storage/lmdb/log/log-trim-state.ts';
import { moveLog } from '../../../../src/storage/lmdb/reshard/move-log.ts';
import { temporaryFolder } from '../../../harness/server/server.ts';
import { openEnvironment } from '../../../harness/storage/environment.ts';
import { trimLog } from '../../../harness/storage/trim.ts';

const folder = temporaryFolder();
const opened: Environment[] = [];
afterAll(async () => {
  for (const environment of opened) await environment.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(name: string): Environment {
  const environment = openEnvironment(join(folder, name));
  opened.push(environment);
  return environment;
}

const short = 'SHORT001DEVICE0001' as DeviceKey;
const long = 'LONG0001DEVICE0001' as DeviceKey;
const plain = 'PLAIN001DEVICE0001' as DeviceKey;
const day = 86_400;

/** One commit at that time, a record for each device; their payload tells which they are. */
let count = 0;
async function commit(
  environment: Environment,
  timeMs: number,
  devices: readonly DeviceKey[],
  size = 10,
): Promise<void> {
  await environment.write(() => {
    const log = new IngestLog(environment.table('log'), () => timeMs);
    for (const device of devices) {
      const payload = Buffer.from(JSON.stringify({ n: count++, filling: 'x'.repeat(size) }));
      log.append(encodeLogRecord({ device, kind: 'message', schema: 'note', payload }));
    }
    log.flush();
  });
}

interface Known {
  position: number;
  id: string;
  device: DeviceKey;
  payload: string;
}

function recordsOf(environment: Environment): Known[] {
  environment.refresh();
  return [...readLog(environment.table('log'))].map(({ position, id, device, payload }) => ({
    position,
    id: id.toString('hex'),
    device,
    payload: String(payload),
  }));
}

/** The same as a consumer reads it, page by page. */
function pagesOf(environment: Environment): Known[] {
  const tables = openTables(environment);
  const records: Known[] = [];
  for (let from = 0; ; ) {
    const page = readLogPage(tables, from);
    for (const { position, id, device, payload } of page.records) {
      records.push({ position, id: id.toString('hex'), device, payload: String(payload) });
    }
    if (page.next === from) return records;
    from = page.next;
  }
}

it('records of a fleet go when they are over, those beside them stay with their positions and ids', async () => {
  const environment = open('lives');
  const nowMs = Date.now();
  const ages = [100, 50, 20, 5, 2, 0.5];
  for (const age of ages) await commit(environment, nowMs - age * day * 1_000, [short, plain, long, short]);
  await commit(environment, nowMs - 0.2 * day * 1_000, [short]);
  const before = recordsOf(environment);
  const end = endOfLog(environment.table('log'));
  const fleets = new Map([
    ['SHORT001', { ttlSeconds: day }],
    ['LONG0001', { ttlSeconds: 60 * day }],
  ]);
  const retention = { ttlSeconds: 10 * day, fleets };
  const lives: Record<DeviceKey, number> = { [short]: 1, [plain]: 10, [long]: 60 };
  const expected = before.filter(({ device, position }) => {
    const age = ages[Math.floor(position / 4)] ?? 0;
    return age <= (lives[device] ?? 0);
  });
  expect(expected).toHaveLength(15 - 5 + 1);

  await trimLog(environment, { retention, nowMs });
  expect(recordsOf(environment)).toEqual(expected);
  expect(pagesOf(environment)).toEqual(expected);
  expect(endOfLog(environment.table('log'))).toBe(end);
  for (const { value } of environment.table('log').getRange({})) expect(countBatch(value)).toBeGreaterThan(0);
  // Once more changes nothing; and by other lives everything is looked at again.
  await trimLog(environment, { retention, nowMs });
  expect(recordsOf(environment)).toEqual(expected);
  fleets.set('LONG0001', { ttlSeconds: 3 * day });
  await trimLog(environment, { retention, nowMs });
  expect(recordsOf(environment)).toEqual(
    expected.filter(({ device, position }) => device !== long || (ages[Math.floor(position / 4)] ?? 0) <= 3),
  );

  // Cut records move to other shards like anything else, and are cut again there.
  const target = open('lives-target');
  for (const _ of moveLog(environment, () => target));
  const content = ({ id, device, payload }: Known): string => `${id} ${device} ${payload}`;
  expect(recordsOf(target).map(content)).toEqual(recordsOf(environment).map(content));
  await commit(target, nowMs, [plain]);
  const later = {
    ttlSeconds: 3 * day,
    fleets: new Map([
      ['SHORT001', { ttlSeconds: day }],
      ['LONG0001', { ttlSeconds: 60 * day }],
    ]),
  };
  // A batch that was moved is as old as the newest record up to there.
  await trimLog(target, { retention: later, nowMs: nowMs + 4 * day * 1_000 });
  expect([...target.table('log').getRange({ limit: 1 })].map(({ value }) => isCutBatch(value))).toEqual([
    true,
  ]);
  expect(recordsOf(target)).toEqual(pagesOf(target));
  expect(recordsOf(target).slice(0, -1).map(content)).toEqual(
    recordsOf(environment)
      .filter(({ device }) => device === long)
      .map(content),
  );
});

it('a fleet that has more than it may loses its oldest records, and no other fleet any', async () => {
  const environment = open('bytes');
  const nowMs = Date.now();
  for (let batch = 0; batch < 200; batch += 1) await commit(environment, nowMs, [short, plain], 1_000);
  const bytesMax = 50_000;
  const retention = { ttlSeconds: day, fleets: new Map([['SHORT001', { bytesMax }]]) };
  const ofPlain = recordsOf(environment).filter(({ device }) => device === plain);
  const ofShort = recordsOf(environment).filter(({ device }) => device === short);
  const largestStep = await trimLog(environment, { retention, nowMs });
  expect(largestStep).toBeLessThanOrEqual(1024 * 1024 * 2);
  const left = recordsOf(environment).filter(({ device }) => device === short);
  expect(recordsOf(environment).filter(({ device }) => device === plain)).toEqual(ofPlain);
  expect(left).toEqual(ofShort.slice(-left.length));
  const bytes = storedLogBytes(environment.table('times')).get('SHORT001') ?? 0;
  expect(bytes).toBeLessThanOrEqual(bytesMax);
  expect(bytes).toBeGreaterThan(bytesMax * 0.9);
  expect(Math.abs(bytes - left.length * 1_040)).toBeLessThan(left.length * 20);

  // Two shards that have as much of it each keep half.
  await trimLog(environment, { retention, nowMs, elsewhere: new Map([['SHORT001', bytes]]) });
  const half = storedLogBytes(environment.table('times')).get('SHORT001') ?? 0;
  expect(half).toBeLessThanOrEqual(bytesMax / 2);
  expect(half).toBeGreaterThan(bytesMax * 0.4);
  // Later records are counted with it.
  for (let batch = 0; batch < 100; batch += 1) await commit(environment, nowMs, [short], 1_000);
  await trimLog(environment, { retention, nowMs });
  expect(storedLogBytes(environment.table('times')).get('SHORT001')).toBeLessThanOrEqual(bytesMax);
  expect(recordsOf(environment).filter(({ device }) => device === plain)).toEqual(ofPlain);
});

it('a limit that was taken off and is set again counts anew: what went meanwhile is not held against the fleet', async () => {
  const environment = open('limit-again');
  const nowMs = Date.now();
  const own = { ttlSeconds: day, fleets: new Map([['SHORT001', { bytesMax: 50_000 }]]) };
  const none = { ttlSeconds: day, fleets: new Map() };
  for (let batch = 0; batch < 40; batch += 1) await commit(environment, nowMs, [short], 1_000);
  await trimLog(environment, { retention: own, nowMs });
  const laterMs = nowMs + 2 * day * 1_000;
  await commit(environment, laterMs, [short], 1_000);
  await trimLog(environment, { retention: none, nowMs: laterMs });
  expect(recordsOf(environment)).toHaveLength(1);
  expect(storedLogBytes(environment.table('times')).size).toBe(0);
  for (let batch = 0; batch < 30; batch += 1) await commit(environment, laterMs, [short], 1_000);
  await trimLog(environment, { retention: own, nowMs: laterMs });
  expect(recordsOf(environment)).toHaveLength(31);
});

it('the file stays as large as it is while as much goes as comes', async () => {
  const environment = open('flat');
  const startMs = Date.now();
  const fileBytes = (): number => statSync(join(folder, 'flat', recordsFile)).size;
  const sizes: number[] = [];
  const fleets = new Map([['SHORT001', { ttlSeconds: 60 }]]);
  for (let minute = 0; minute < 40; minute += 1) {
    const nowMs = startMs + minute * 60_000;
    for (let batch = 0; batch < 20; batch += 1) {
      await commit(environment, nowMs, [short, short, plain, short], 5_000);
    }
    await trimLog(environment, { retention: { ttlSeconds: 300, fleets, bytesMax: 0 }, nowMs });
    sizes.push(fileBytes());
  }
  const settled = Math.max(...sizes.slice(8, 16));
  expect(Math.max(...sizes.slice(16)) / settled).toBeLessThanOrEqual(1.05);
});

it('a log that is too large for the server loses its oldest batches', async () => {
  const environment = open('fit');
  for (let batch = 0; batch < 100; batch += 1) await commit(environment, Date.now(), [plain], 20_000);
  const ids = recordsOf(environment).map(({ id }) => id);
  const bytesMax = 1024 * 1024;
  const retention = { ttlSeconds: day, bytesMax, fleets: new Map() };
  for (let pass = 0; pass < 3; pass += 1) await trimLog(environment, { retention });
  expect(environment.sizeOf('log').bytes).toBeLessThanOrEqual(bytesMax);
  const left = recordsOf(environment).map(({ id }) => id);
  expect(left.length).toBeGreaterThan(30);
  expect(left).toEqual(ids.slice(-left.length));
});

it('a damaged batch between sound ones goes when any fleet’s would, and is no end of the pass', async () => {
  const environment = open('damaged');
  const nowMs = Date.now();
  const old = nowMs - 100 * day * 1_000;
  for (let batch = 0; batch < 3; batch += 1) await commit(environment, old, [short, long]);
  await commit(environment, nowMs, [plain]);
  const log = environment.table('log');
  const sound = log.getBinary(sequenceKey(2)) as Buffer;
  await environment.write(() => log.putSync(sequenceKey(2), sound.subarray(0, -3)));
  const fleets = new Map([['LONG0001', { ttlSeconds: 300 * day, bytesMax: 1_000_000 }]]);
  await trimLog(environment, { retention: { ttlSeconds: day, fleets }, nowMs });
  // It may hold what lives longer.
  expect([...log.getKeys({})]).toHaveLength(4);
  await trimLog(environment, { retention: { ttlSeconds: day, fleets: new Map() }, nowMs });
  expect([...log.getKeys({})]).toHaveLength(1);
});
