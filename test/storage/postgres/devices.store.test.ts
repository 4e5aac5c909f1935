import { randomInt } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { generateUuid } from '../../../src/core/uuid.ts';
import { retireSecrets } from '../../../src/storage/postgres/devices/device-operations.ts';
import { entriesOf } from '../../../src/storage/postgres/devices/postgres-devices.ts';
import { UnitOfWork } from '../../../src/storage/postgres/writes/unit-of-work.ts';
import { type DeviceNode, deviceOf, fleetId, newDevice, useNodes } from './device-node.ts';

describe('devices of several nodes on one database', () => {
  const nodes = useNodes();

  const names = async (sql: string): Promise<unknown[]> =>
    (await nodes[0].database.query<{ of: unknown }>(sql)).map((row) => row.of);

  it('of lists that overlap and are created at once, one is created and the others not at all', async () => {
    for (let round = 0; round < 10; round += 1) {
      const first = round * 100;
      const lists = [0, 1, 2, 3].map((n) =>
        Array.from({ length: 20 }, (_, i) => newDevice(deviceOf(first + 5 * n + ((i * 7) % 20)))),
      );
      const answers = await Promise.all(
        lists.map((list, n) => nodes[n % 2 === 0 ? 0 : 1].write('createDevices', list)),
      );
      const created = answers.filter((taken) => taken === undefined).length;
      expect(created).toBeGreaterThanOrEqual(1);
      expect((await nodes[1].reads.fleetCounts(fleetId)).devices).toBe(20 * (round + 1) * created);
      expect(created).toBe(1);
    }
    expect(nodes.flatMap(({ failures }) => failures)).toEqual([]);
  });

  it('thousands are created in one write', async () => {
    const many = Array.from({ length: 5_000 }, (_, n) =>
      newDevice(deviceOf(n), { tags: ['a', `b${n % 10}`], enabled: n % 5 !== 0, name: `device ${n}` }),
    );
    expect(await nodes[0].write('createDevices', many)).toBeUndefined();
    expect(await nodes[1].reads.fleetCounts(fleetId)).toEqual({ devices: 5_000, disabled: 1_000 });
    const answered = nodes[0].write('createDevices', [...many.slice(0, 4_999), newDevice(deviceOf(9_999))]);
    expect(await answered).toBe(deviceOf(0));
    expect(await nodes[1].reads.get(deviceOf(9_999))).toBeUndefined();
    expect(await names('SELECT count(*) AS of FROM mailbox')).toEqual([5_000]);
  });

  it('what nodes do to the same devices at once leaves counts, tags and rows that agree', async () => {
    const deviceCount = 6;
    const act = async (node: DeviceNode): Promise<void> => {
      const device = deviceOf(randomInt(deviceCount));
      const others = Array.from({ length: 3 }, () => deviceOf(randomInt(deviceCount)));
      const tags = ['a', 'b', 'c'].filter(() => randomInt(2) === 0);
      const made = newDevice(device, { tags, enabled: randomInt(2) === 0, name: tags.join(' ') });
      const lastSeenMs = randomInt(1e12);
      const address = Buffer.of(127, 0, 0, 1);
      const fetches = [{ mailId: generateUuid(), count: 1, firstMs: 1 }];
      const enqueue = {
        device,
        name: 'note',
        payload: Buffer.from('{}'),
        ttlSeconds: 60,
        mailboxMailsMax: 9,
      };
      const acts: (() => Promise<unknown>)[] = [
        () =>
          node.write(
            'createDevices',
            [...new Set([device, ...others])].map((one) => newDevice(one)),
          ),
        () =>
          node.write(
            'putDevices',
            [device, ...others].map((one) => ({
              device: { ...made, device: one },
              change: { addTags: tags },
            })),
          ),
        () => node.write('deleteDevice', device),
        () =>
          node.write('changeDevices', {
            devices: [device, ...others],
            change: { tags, enabled: made.enabled },
          }),
        () => node.write('changeDevice', { device, change: { name: `${lastSeenMs}`, removeTags: tags } }),
        () =>
          node.write(
            'noteActivity',
            [device, ...others].map((one) => ({ device: one, lastSeenMs, address, fetches })),
          ),
        () => node.write('enqueue', enqueue),
        () => node.ingest({ device, idempotency: { key: generateUuid(), digest: Buffer.alloc(32) } }),
      ];
      await acts[randomInt(acts.length)]?.();
    };
    const workers = Array.from({ length: 16 }, async (_, worker) => {
      for (let n = 0; n < 60; n += 1) await act(nodes[worker % 2 === 0 ? 0 : 1]);
    });
    await Promise.all(workers);
    expect(nodes.flatMap(({ failures }) => failures)).toEqual([]);
    const devices = await names('SELECT device AS of FROM device ORDER BY device');
    for (const table of ['mailbox', 'activity']) {
      expect(await names(`SELECT device AS of FROM ${table} ORDER BY device`)).toEqual(devices);
    }
    const [disabled] = await names('SELECT count(*) AS of FROM device WHERE NOT enabled');
    expect(await nodes[0].reads.fleetCounts(fleetId)).toEqual({ devices: devices.length, disabled });
    expect(await names(`SELECT device || ' ' || tag AS of FROM device_tag ORDER BY 1`)).toEqual(
      await names(
        `SELECT DISTINCT device || ' ' || jsonb_array_elements_text(tags) AS of FROM device ORDER BY 1`,
      ),
    );
    expect(
      await names('SELECT device AS of FROM mail WHERE device NOT IN (SELECT device FROM device)'),
    ).toEqual([]);
  });

  it('D3: old secrets whose time is over are dropped once, by whoever comes first, and streams are looked at', async () => {
    const all = Array.from({ length: 50 }, (_, n) => deviceOf(n));
    await nodes[0].write(
      'createDevices',
      all.map((device) => newDevice(device)),
    );
    const rotation = { digest: Buffer.alloc(32, 2), oldUntilMs: Date.now() - 1 };
    await nodes[0].write('changeDevices', { devices: all, change: { rotation } });
    const sweep = (node: DeviceNode): Promise<UnitOfWork['effects']> =>
      node.database.transaction(async (transaction) => {
        const work = new UnitOfWork();
        work.nowMs = Date.now();
        await retireSecrets(work, transaction, 30);
        await transaction.commit();
        return work.effects;
      });
    const rounds = await Promise.all([...nodes, ...nodes].map(sweep));
    rounds.push(await sweep(nodes[0]));
    expect(rounds.flatMap(({ recheckedStreams }) => recheckedStreams).sort()).toEqual(all);
    for (const device of all) {
      expect((await nodes[1].reads.credentials(device))?.secretDigests.map(([first]) => first)).toEqual([2]);
    }
  });

  it('a search goes along its index and reads no more of it than it looks at', async () => {
    const many = Array.from({ length: 5_000 }, (_, n) =>
      newDevice(deviceOf(n), { tags: [`t${n % 10}`], enabled: n % 50 !== 0, name: `device ${n % 100}` }),
    );
    await nodes[0].write('createDevices', many);
    await nodes[0].database.query(
      `UPDATE mailbox SET size = 1, waiting_since_ms = 1 WHERE right(device, 1) = '0'`,
    );
    await nodes[0].database.query('ANALYZE');
    const filter = { fleetId, tag: 't3', namePrefix: 'device 5', seenBeforeMs: 1e12, waitingBeforeMs: 1e12 };
    const expected = {
      id: 'device_pkey',
      tag: 'device_tag_pkey',
      name: 'device_by_name',
      seen: 'activity_by_bucket',
      waiting: 'mailbox_waiting',
      disabled: 'device_disabled',
    };
    for (const [by, index] of Object.entries(expected)) {
      for (const after of ['', 'DEVICE0100', `device 5\0DEVICE0105`]) {
        for (const isReversed of by === 'seen' ? [false, true] : [false]) {
          const { from, order, values } = entriesOf(by as 'id', { ...filter, isReversed }, after);
          const rows = await nodes[0].database.query<{ 'QUERY PLAN': string }>(
            `EXPLAIN SELECT * FROM ${from} ORDER BY ${order} LIMIT 20`,
            values,
          );
          const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
          expect(plan).toContain(index);
          expect(plan).not.toContain('Sort');
        }
      }
    }
  });
});
