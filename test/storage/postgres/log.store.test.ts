import { describe, expect, it } from 'vitest';
import { generateUuid, uuidTimeMs } from '../../../src/core/uuid.ts';
import { maintainKeyPartitions } from '../../../src/storage/postgres/mail/key-claims.ts';
import { migrations } from '../../../src/storage/postgres/schema/migrations.ts';
import {
  dropPartition,
  keyPartitions,
  partitionsOf,
  recordPartitions,
  unindexedRecordParts,
} from '../../../src/storage/postgres/schema/partitions.ts';
import { type DeviceNode, deviceOf, useNodes } from './device-node.ts';

const hourMs = 3_600_000;
/** SQLSTATE. */
const lockNotAvailable = '55P03';

describe('records of several nodes in one database', () => {
  const nodes = useNodes();

  /** A drop waits for writers no longer than 200 ms, and is tried again: on a loaded machine that is not always enough. */
  const tried = (work: () => Promise<void>): Promise<void> =>
    expect
      .poll(() =>
        work().then(
          () => 'done',
          ({ code }: { code?: string }) => code,
        ),
      )
      .toBe('done');
  const failures = (): string[] => nodes.flatMap((node) => node.failures);
  const number = async (sql: string): Promise<number> =>
    (await nodes[0].database.query<{ of: number }>(sql))[0]?.of ?? -1;

  it('D18: of one key at once on two nodes one is stored, in any order of many', async () => {
    const keys = Array.from({ length: 100 }, () => generateUuid());
    const send = (node: DeviceNode, digest: number, order: readonly Buffer[]) =>
      Promise.all(
        order.map((key) => node.ingest({ idempotency: { key, digest: Buffer.alloc(32, digest) } })),
      );
    const answers = await Promise.all([
      send(nodes[0], 1, keys),
      send(nodes[1], 1, [...keys].reverse()),
      send(nodes[1], 1, keys),
    ]);
    const counts = (outcome: string) => answers.flat().filter((one) => one === outcome).length;
    expect([counts('stored'), counts('replayed')]).toEqual([100, 200]);
    expect(new Set(await send(nodes[0], 2, keys))).toEqual(new Set(['key_reused']));
    expect(await nodes[0].log()).toHaveLength(100);
    expect(failures()).toEqual([]);
  });

  it('times of records only grow with positions, and a page holds no more than it may', async () => {
    const large = Buffer.alloc(60_000, '{');
    const writers = Array.from({ length: 60 }, async (_, n) => {
      for (let i = 0; i < 10; i += 1) {
        await nodes[n % 2 === 0 ? 0 : 1].ingest({ payload: n % 10 === 0 ? large : Buffer.from('{}') });
      }
    });
    await Promise.all(writers);
    const page = await nodes[0].records.read(0);
    expect(page.records.length).toBeGreaterThan(1);
    expect(page.records.reduce((sum, { payload }) => sum + payload.length, 0)).toBeLessThanOrEqual(
      1024 * 1024,
    );
    const records = await nodes[0].log();
    expect(records.map(({ position }) => position)).toEqual(Array.from({ length: 600 }, (_, n) => n));
    for (const [n, { storedAtMs }] of records.entries()) {
      expect(storedAtMs).toBeGreaterThanOrEqual(records[n - 1]?.storedAtMs ?? 0);
      const first = records.findIndex((one) => one.storedAtMs >= storedAtMs);
      if (n % 50 === 0) expect(await nodes[1].records.positionAt(storedAtMs)).toBe(first);
    }
  });

  it('parts are made once by all nodes, and dropped, while writes go on', async () => {
    const isOver = { now: false };
    let stored = 0;
    const writers = nodes.map(async (node) => {
      while (!isOver.now) {
        await node.ingest({ idempotency: { key: generateUuid(), digest: Buffer.alloc(32) } });
        stored += 1;
      }
    });
    const { settings } = nodes[0].limits;
    const before = await partitionsOf(nodes[0].database, keyPartitions);
    for (const hours of [24, 36, 1]) {
      const limits = { idempotencyWindowSeconds: hours * 3_600, settings };
      await Promise.all(
        [...nodes, ...nodes].map(({ database }) => tried(() => maintainKeyPartitions(database, limits))),
      );
      await Promise.all(nodes.map((node) => tried(() => node.trimmer.pass())));
    }
    isOver.now = true;
    await Promise.all(writers);
    const after = await partitionsOf(nodes[0].database, keyPartitions);
    expect(after.length).toBeLessThan(before.length);
    for (const [n, { fromMs }] of after.entries()) if (n > 0) expect(fromMs).toBe(after[n - 1]?.toMs);
    expect(await nodes[0].log()).toHaveLength(stored);
    expect(failures().filter((line) => !line.includes(lockNotAvailable))).toEqual([]);
  });

  it('D18: no key is taken that is older than one that was forgotten', async () => {
    const [node] = nodes;
    const oldMs = Date.now() - 12 * hourMs;
    const [key, other] = [generateUuid(oldMs), generateUuid(oldMs)];
    const send = (one: Buffer) => node.ingest({ idempotency: { key: one, digest: Buffer.alloc(32) } });
    expect(await send(key)).toBe('stored');
    await maintainKeyPartitions(node.database, {
      idempotencyWindowSeconds: 3_600,
      settings: node.limits.settings,
    });
    expect([await send(key), await send(other)]).toEqual(['key_too_old', 'key_too_old']);
    await maintainKeyPartitions(node.database, node.limits);
    expect([await send(key), await send(other)]).toEqual(['key_too_old', 'key_too_old']);
    expect(await send(generateUuid(Date.now() - 60_000))).toBe('stored');
    expect(await node.log()).toHaveLength(2);
  });

  it('the id of a record tells when it was stored, also where a node is behind', async () => {
    const [node] = nodes;
    await node.ingest();
    await node.database.query('UPDATE record_end SET at_ms = at_ms + 5000');
    await node.ingest();
    for (const { id, storedAtMs } of await node.log()) expect(uuidTimeMs(id)).toBe(storedAtMs);
  });

  it('a part that somebody reads is not waited for for long, and writes go on', async () => {
    const [node, other] = nodes;
    const [part] = await partitionsOf(node.database, recordPartitions);
    if (part === undefined) throw new Error('there is a part');
    await node.ingest();
    await other.database.transaction(async (transaction) => {
      await transaction.query('SELECT count(*) FROM record');
      await expect(dropPartition(node.database, recordPartitions, part, () => {})).rejects.toThrow();
      expect(await node.ingest()).toBe('stored');
      await transaction.commit();
    });
    expect(await dropPartition(node.database, recordPartitions, part, () => {})).toBe(true);
    expect(await dropPartition(other.database, recordPartitions, part, () => {})).toBe(false);
  });

  /** Makes it as if the first records had been stored so long ago: in a part of that time. */
  async function age(fleetId: string, hours: number): Promise<void> {
    const { database } = nodes[0];
    const nowMs = Date.now();
    const fromMs = nowMs - hours * hourMs;
    const name = `record_${fromMs - 1}_${fromMs + 1}`;
    await database.query(`CREATE TABLE ${name} (LIKE record INCLUDING ALL)`);
    await database.query(
      `ALTER TABLE record ATTACH PARTITION ${name} FOR VALUES FROM (${fromMs - 1}) TO (${fromMs + 1})`,
    );
    await database.query(`UPDATE record SET stored_at_ms = $1 WHERE left(device, 8) = $2`, [fromMs, fleetId]);
  }

  it('a part from before the index by device gets it once nobody writes to it, and its records are found before and after', async () => {
    const [node, other] = nodes;
    for (let n = 0; n < 6; n += 1) await node.ingest({ device: deviceOf(n % 2) });
    await age('FLEET001', 30);
    await node.ingest({ device: deviceOf(1) });
    // As the tables were before.
    await node.database.query('DROP INDEX record_by_device');
    await node.database.query(migrations[1] ?? '');
    const span = { from: 0, to: Number.POSITIVE_INFINITY, isNewestFirst: true, recordsMax: 10 };
    const positions = async () =>
      (await other.records.ofDevice(deviceOf(1), span)).records.map(({ position }) => position);
    const unindexed = async () => (await unindexedRecordParts(node.database)).length;
    const parts = (await partitionsOf(node.database, recordPartitions)).length;
    expect(await positions()).toEqual([6, 5, 3, 1]);
    expect(await unindexed()).toBe(parts);
    await Promise.all(nodes.map((one) => one.trimmer.pass()));
    // All but that of today and those to come.
    expect(await unindexed()).toBeLessThan(parts);
    expect(await positions()).toEqual([6, 5, 3, 1]);
    expect(failures()).toEqual([]);
  });

  it('each fleet keeps its records for its own life', async () => {
    const [node, other] = nodes;
    for (const [fleetId, hours] of [
      ['FLEET001', 300],
      ['FLEET002', 60],
      ['FLEET003', 30],
    ] as const) {
      for (let n = 0; n < 4; n += 1) await node.ingest({ device: deviceOf(n, fleetId) });
      await age(fleetId, hours);
    }
    await node.ingest({ device: deviceOf(9) });
    const kept = async () => (await node.log()).map(({ position }) => position);
    const rest = { bytesMax: 0 };
    const passes = async (lifeHours: number, fleets: Record<string, number>) => {
      const own = Object.entries(fleets).map(([id, hours]) => [id, { ttlSeconds: hours * 3_600 }] as const);
      for (const one of nodes) {
        one.retention = { ...rest, ttlSeconds: lifeHours * 3_600, fleets: new Map(own) };
      }
      await Promise.all(nodes.map((one) => one.trimmer.pass()));
      await other.trimmer.pass();
    };
    await passes(200, { FLEET001: 400 });
    expect(await kept()).toEqual(Array.from({ length: 13 }, (_, n) => n));
    await passes(400, { FLEET002: 40 });
    expect(await kept()).toEqual([0, 1, 2, 3, 8, 9, 10, 11, 12]);
    await passes(20, { FLEET003: 1 });
    expect(await kept()).toEqual([12]);
    expect(await node.records.end()).toBe(13);
    await node.ingest();
    expect(await kept()).toEqual([12, 13]);
    expect(failures()).toEqual([]);
  });

  it('a fleet that has more bytes than it may loses its oldest records, and no other fleet does', async () => {
    const [node, other] = nodes;
    const payload = Buffer.alloc(1_000 - 23 - 'reading'.length, ' ');
    for (const [fleetId, hours] of [
      ['FLEET001', 30],
      ['FLEET002', 20],
    ] as const) {
      await Promise.all(
        Array.from({ length: 40 }, (_, n) => node.ingest({ device: deviceOf(n, fleetId), payload })),
      );
      await age(fleetId, hours);
    }
    await Promise.all(Array.from({ length: 40 }, (_, n) => node.ingest({ device: deviceOf(n), payload })));
    const limit = async (bytesMax: number) => {
      const fleets = new Map([['FLEET001', { bytesMax }]]);
      for (const one of nodes) one.retention = { ttlSeconds: 100 * 3_600, bytesMax: 0, fleets };
      for (const one of [node, other, node]) await one.trimmer.pass();
      const records = await node.log();
      const positions = records
        .filter(({ device }) => device.startsWith('FLEET001'))
        .map((one) => one.position);
      expect(records.length - positions.length).toBe(40);
      expect(await number('SELECT sum(bytes)::bigint AS of FROM record_bytes')).toBe(
        1_000 * positions.length,
      );
      expect(positions.at(-1)).toBe(119);
      return positions.length;
    };
    expect(await limit(80_000)).toBe(80);
    expect(await limit(64_000)).toBe(60);
    expect(await limit(32_000)).toBe(30);
    // Records that have gone with their part are not counted any more.
    const short = new Map([['FLEET001', { bytesMax: 32_000 }]]);
    node.retention = { ttlSeconds: 2 * 3_600, bytesMax: 0, fleets: short };
    await node.trimmer.pass();
    expect(await node.log()).toHaveLength(30);
    expect(failures()).toEqual([]);
  });

  it('a log that is too large on disk loses its oldest parts, but not the one that is written', async () => {
    const [node] = nodes;
    await node.ingest({ device: deviceOf(1, 'FLEET001') });
    await age('FLEET001', 30);
    await node.ingest({ device: deviceOf(1, 'FLEET002') });
    node.retention = { ttlSeconds: 100 * 3_600, bytesMax: 1, fleets: new Map() };
    await node.trimmer.pass();
    expect((await node.log()).map(({ position }) => position)).toEqual([1]);
    expect(await node.ingest()).toBe('stored');
  });
});
