import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../src/core/identity.ts';
import { WorkerMetrics } from '../../src/core/telemetry/worker-metrics.ts';
import { generateUuid } from '../../src/core/uuid.ts';
import { undescribed } from '../../src/domain/devices/device-fields.ts';
import type { Broadcast } from '../../src/domain/mail/broadcast.ts';
import type { Enqueue } from '../../src/domain/mail/mail.ts';
import { shardFor, shardOf } from '../../src/domain/placement.ts';
import { Database } from '../../src/storage/postgres/connection/database.ts';
import { openPostgresShard } from '../../src/storage/postgres/writes/open-shard.ts';
import type { PostgresShard } from '../../src/storage/postgres/writes/postgres-shard.ts';
import { createFleet } from '../harness/devices/device.ts';
import { createDatabase, createMigrated } from '../harness/postgres/postgres.ts';
import { type CommandResult, fleetpost } from '../harness/server/command.ts';
import { configWith } from '../harness/server/config.ts';
import { TestServer, temporaryFolder } from '../harness/server/server.ts';
import { allOf, queueOf, recordsOf } from './shard-answers.ts';

const log = pino({ level: 'silent' });
const main = new URL('../../dist/main.js', import.meta.url).pathname;
const fleets = ['FLEET001', 'FLEET002'];
const devices = fleets.flatMap((fleet) =>
  Array.from({ length: 25 }, (_, n) => deviceKeyOf(fleet, `DEVICE${String(n).padStart(4, '0')}`)),
);
const [deleted] = devices as [DeviceKey];
const digest = Buffer.alloc(32, 7);
const keyOf = new Map(devices.map((device) => [device, generateUuid()]));
const once = (device: DeviceKey): Uint8Array =>
  Buffer.concat([keyOf.get(device) ?? Buffer.alloc(16), Buffer.from('once')]);

/** Nodes of one thread on these databases. */
class Store {
  readonly shards: PostgresShard[] = [];

  static async open(urls: readonly string[]): Promise<Store> {
    const store = new Store();
    try {
      for (const [index, url] of urls.entries()) {
        const config = configWith();
        const shard = await openPostgresShard({
          ...config,
          url,
          identity: { index, databases: urls.length },
          connectionsMax: 4,
          timeoutMilliseconds: 10_000,
          keepAliveSeconds: 30,
          retention: {
            retention: () => ({ ttlSeconds: 604_800, bytesMax: 0, fleets: new Map() }),
            bytesElsewhere: () => new Map(),
          },
          metrics: new WorkerMetrics([], WorkerMetrics.allocate([])),
          log,
        });
        store.shards.push(shard);
      }
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  of(device: DeviceKey): PostgresShard {
    return shardFor(this.shards, device);
  }

  async close(): Promise<void> {
    for (const shard of this.shards) await shard.close();
  }
}

const mailFor = (device: DeviceKey, more: Partial<Enqueue> = {}): Enqueue => ({
  device,
  name: 'note',
  payload: Buffer.from('{"a":1}'),
  ttlSeconds: 3_600,
  mailboxMailsMax: 1_000,
  ...more,
});

const broadcast = generateUuid();
const broadcastTo = (...to: DeviceKey[]): Broadcast => {
  const { device: _, ...mail } = mailFor(deleted);
  return { broadcast, devices: to, mail };
};

/** Something of everything that a device can have. Answers the ids of its mails. */
async function fill(store: Store): Promise<Map<DeviceKey, Uint8Array[]>> {
  const mails = new Map<DeviceKey, Uint8Array[]>();
  for (const [index, device] of devices.entries()) {
    const shard = store.of(device);
    const plain = { device, secretDigests: [Buffer.alloc(32, index)], createdAtMs: 1_000 + index };
    await shard.devices.create([
      {
        ...plain,
        ...undescribed,
        name: `Name ${index}`,
        tags: ['all', `t${index % 3}`],
        enabled: index % 5 !== 0,
      },
    ]);
    const ids: Uint8Array[] = [];
    const send = async (more: Partial<Enqueue> = {}): Promise<Uint8Array> => {
      const outcome = await shard.mail.enqueue(mailFor(device, more));
      if (outcome.result !== 'queued') throw new Error(outcome.result);
      ids.push(outcome.mailId);
      return outcome.mailId;
    };
    const acknowledged = await send({ dedupeKey: once(device) });
    await shard.mail.settle({ device, mailId: acknowledged, verb: 'ack' });
    const dead = await send({ requeuesMax: 0 });
    await shard.mail.settle({ device, mailId: dead, verb: 'requeue' });
    await send({ deliverAtMs: Date.now() + 3_600_000 });
    const key = keyOf.get(device);
    if (key === undefined) throw new Error('each device has a key');
    await send({ idempotency: { key, digest } });
    await send({ replaceKey: 'mode' });
    await shard.mail.broadcast(broadcastTo(device));
    await shard.devices.noteActivity([
      { device, lastSeenMs: 5_000 + index, address: Buffer.from([192, 0, 2, 1]), fetches: [] },
    ]);
    const record = { device, kind: 'datapoint' as const, schema: 'reading', payload: Buffer.from('{}') };
    await shard.log.append({ ...record, idempotency: { key, digest } });
    const queue = { name: 'q', seq: 7 + index };
    const mail = { mailsMax: 0, bytesMax: 0 };
    await shard.sync({ device, records: [undefined], queue, settlements: [], mail });
    mails.set(device, ids);
  }
  await store.of(deleted).devices.delete(deleted);
  return mails;
}

/** All that a store answers of devices, whichever database has them. */
async function answersOf(store: Store, mails: ReadonlyMap<DeviceKey, Uint8Array[]>): Promise<unknown> {
  const ofDevices = new Map<DeviceKey, unknown>();
  for (const device of devices) {
    const shard = store.of(device);
    const receipts: unknown[] = [];
    for (const id of mails.get(device) ?? []) receipts.push(await shard.mail.receipt(device, id));
    ofDevices.set(device, {
      receipts,
      status: await shard.devices.get(device),
      credentials: await shard.devices.credentials(device),
      size: await shard.mail.size(device),
      queue: await queueOf(shard, device),
      mails: await allOf((after) => shard.mail.list(device, after, 2)),
    });
  }
  const ofFleets: unknown[] = [];
  for (const fleet of fleets) {
    const counts = await Promise.all(store.shards.map((shard) => shard.devices.fleetCounts(fleet)));
    const sum = (of: 'devices' | 'disabled') => counts.reduce((total, one) => total + one[of], 0);
    const letters = await Promise.all(
      store.shards.map((shard) => allOf((after) => shard.deadLetters.list(fleet, {}, after, 7))),
    );
    const tagged = await Promise.all(
      store.shards.map((shard) => shard.devices.idsWithTag(fleet, 't1', '', 100)),
    );
    ofFleets.push({
      devices: sum('devices'),
      disabled: sum('disabled'),
      // Those of a device that was deleted go some time later.
      letters: letters
        .flat()
        .filter(({ device }) => device !== deleted)
        .sort((one, other) => Buffer.compare(one.mailId, other.mailId)),
      tagged: tagged.flat().sort(),
    });
  }
  return { ofDevices, ofFleets };
}

/** Expects mail that was sent before to be known wherever it is sent to now. */
async function expectRepeats(store: Store): Promise<void> {
  for (const device of devices) {
    const shard = store.of(device);
    const key = keyOf.get(device) as Buffer;
    const record = { device, kind: 'datapoint' as const, schema: 'reading', payload: Buffer.from('{}') };
    expect(await shard.log.append({ ...record, idempotency: { key, digest } })).toBe('replayed');
    if (device === deleted) continue;
    const size = await shard.mail.size(device);
    await shard.mail.broadcast(broadcastTo(device));
    expect(await shard.mail.size(device)).toBe(size);
    expect(await shard.mail.enqueue(mailFor(device, { dedupeKey: once(device) }))).toMatchObject({
      repeated: true,
    });
    expect(await shard.mail.enqueue(mailFor(device, { idempotency: { key, digest } }))).toMatchObject({
      repeated: true,
    });
  }
}

/** Its progress, which is told of what takes some seconds, is left out. */
async function rebalance(
  from: readonly string[],
  to: readonly string[],
  ...more: string[]
): Promise<CommandResult> {
  const result = await fleetpost(argumentsOf(from, to, ...more));
  return { ...result, stderr: result.stderr.replace(/^Moving: .*\n/gm, '') };
}

const argumentsOf = (from: readonly string[], to: readonly string[], ...more: string[]): string[] => [
  'rebalance',
  ...from.flatMap((url) => ['--from', url]),
  ...to.flatMap((url) => ['--to', url]),
  ...more,
];

describe('databases that are added to the store, or go', () => {
  let urls: string[];

  async function query<T extends Record<string, unknown>>(url: string, text: string): Promise<T[]> {
    const database = new Database({ url, connectionsMax: 1, timeoutMilliseconds: 10_000, log });
    try {
      return await database.query<T>(text);
    } finally {
      await database.close();
    }
  }
  /** Four databases, of which the first have tables. */
  async function prepare(count: number): Promise<Store> {
    urls = [];
    while (urls.length < 4) urls.push(await (urls.length < count ? createMigrated() : createDatabase()));
    return Store.open(urls.slice(0, count));
  }
  /** Every row of a device is where the device belongs, and there alone. */
  async function expectPlaced(list: readonly string[], count: number): Promise<void> {
    const tables = ['device', 'device_tag', 'activity', 'mailbox', 'mail', 'delayed_mail', 'receipt'];
    tables.push('dead_letter', 'sent', 'broadcast_mark');
    for (const [index, url] of list.entries()) {
      const text = [
        ...tables.map((table) => `SELECT device FROM ${table}`),
        'SELECT left(scope, 18) AS device FROM idempotency',
      ].join(' UNION ');
      for (const { device } of await query<{ device: DeviceKey }>(url, text)) {
        expect(shardOf(device, count)).toBe(index);
      }
      expect(await query(url, 'SELECT part FROM copy_progress')).toEqual([]);
    }
  }

  it('devices go along with all that is theirs, there and back, and the log stays', async () => {
    let store = await prepare(2);
    const mails = await fill(store);
    const before = await answersOf(store, mails);
    const logs = [
      await recordsOf(store.shards[0] as PostgresShard),
      await recordsOf(store.shards[1] as PostgresShard),
    ];
    await store.close();
    const shardKey = (shard: number) => `decode(repeat('00', 16) || '000${shard}', 'hex')`;
    for (const shard of [0, 1, 2, 3]) {
      await query(
        urls[0] as string,
        `INSERT INTO stored VALUES ('control', 'cursors', ${shardKey(shard)}, '', 0, 0)`,
      );
    }

    const three = urls.slice(0, 3);
    const grown = await rebalance(urls.slice(0, 2), three, '--json');
    expect(grown.stderr).toBe('');
    expect(grown.status).toBe(0);
    const moving = devices.filter((device) => device !== deleted && shardOf(device, 3) === 2);
    const { kinds } = JSON.parse(grown.stdout) as { kinds: { kind: string; records: number }[] };
    expect(moving.length).toBeGreaterThan(5);
    expect(kinds[0]).toMatchObject({ kind: 'devices', records: moving.length });
    expect(kinds.filter(({ records }) => records === 0)).toEqual([]);
    await expectPlaced(three, 3);
    const places = await query<{ key: Buffer }>(urls[0] as string, `SELECT key FROM stored ORDER BY key`);
    expect(places.map(({ key }) => key.at(-1))).toEqual([0, 1]);
    store = await Store.open(three);
    expect(await answersOf(store, mails)).toEqual(before);
    expect(await recordsOf(store.shards[0] as PostgresShard)).toEqual(logs[0]);
    expect(await recordsOf(store.shards[1] as PostgresShard)).toEqual(logs[1]);
    await expectRepeats(store);
    await store.close();
    // A finished move is left alone, and a caller with the old list is told so.
    expect((await rebalance(urls.slice(0, 2), three)).stdout).toContain('Nothing to move');
    await expect(Store.open(urls.slice(0, 2))).rejects.toThrow('database 1 of 3 of the store');
    await expect(Store.open([three[1], three[0], three[2]] as string[])).rejects.toThrow('of the store');

    // Back: records of the third log would be nobody's.
    store = await Store.open(three);
    const [moved] = moving as [DeviceKey];
    await store
      .of(moved)
      .log.append({ device: moved, kind: 'message', schema: 'note', payload: Buffer.from('{}') });
    await store.close();
    const refused = await rebalance(three, urls.slice(0, 2));
    expect(refused.status).toBe(1);
    expect(refused.stderr).toContain('--leave-log');
    const shrunk = await rebalance(three, urls.slice(0, 2), '--leave-log');
    expect(shrunk.stderr).toBe('');
    expect(shrunk.stdout).toContain('Moved.');
    await expectPlaced(three, 2);
    store = await Store.open(urls.slice(0, 2));
    expect(await answersOf(store, mails)).toEqual(before);
    await expectRepeats(store);
    await store.close();
    await expect(Store.open(three)).rejects.toThrow('of the store');
  });

  it('refuses while a node lives, what is not empty, and other lists; a change can be given up', async () => {
    let store = await prepare(2);
    const mails = await fill(store);
    const before = await answersOf(store, mails);
    const [two, three] = [urls.slice(0, 2), urls.slice(0, 3)];
    const refusal = async (...given: Parameters<typeof rebalance>): Promise<string> => {
      const { status, stderr } = await rebalance(...given);
      expect(status).toBe(1);
      return stderr;
    };
    expect(await refusal(two, three)).toContain('Stop all servers');
    await store.close();
    expect(await refusal(two, two)).toContain('in the order of store.shards');
    expect(await refusal([...two].reverse(), [...[...two].reverse(), three[2] as string])).toContain(
      'is a different one',
    );
    expect(await refusal(urls.slice(0, 1), [two[0], three[2]] as string[])).toContain('is a different one');
    const secret = 'postgres://user:geheim@127.0.0.1:9/none';
    const unreachable = await refusal(two, [...two, secret]);
    expect(unreachable).toContain('could not be reached');
    expect(unreachable).not.toContain('geheim');
    store = await Store.open(two);
    expect(await answersOf(store, mails)).toEqual(before);
    await store.close();

    // One that was cut off between copying and removing.
    await rebalance(two, three, '--give-up').then(({ stderr }) =>
      expect(stderr).toContain('not being resharded'),
    );
    await query(
      urls[2] as string,
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$`,
    );
    await query(
      urls[2] as string,
      'CREATE TRIGGER refuse BEFORE INSERT ON receipt EXECUTE FUNCTION refuse()',
    );
    expect((await rebalance(two, three)).status).toBe(1);
    await expect(Store.open(two)).rejects.toThrow('fleetpost rebalance');
    await expect(Store.open(three)).rejects.toThrow('fleetpost rebalance');
    expect(await refusal(two, urls)).toContain('Another change');
    expect(await refusal(urls.slice(0, 1), two)).toContain('Another change');
    expect((await rebalance(two, three, '--give-up')).stdout).toContain('Nothing has changed');
    await query(urls[2] as string, 'DROP TRIGGER refuse ON receipt');
    store = await Store.open(two);
    expect(await answersOf(store, mails)).toEqual(before);
    await expectRepeats(store);
    await store.close();
    // Configurations keep passwords out of the list of processes.
    const folder = temporaryFolder();
    const files = [two, urls].map((shards, index) => {
      const file = join(folder, `${index}.json`);
      writeFileSync(file, JSON.stringify({ store: { engine: 'postgres', shards } }));
      return file;
    });
    const four = await rebalance(files.slice(0, 1), files.slice(1));
    rmSync(folder, { recursive: true, force: true });
    expect(four.stderr).toBe('');
    store = await Store.open(urls);
    expect(await answersOf(store, mails)).toEqual(before);
    await store.close();
    expect(await refusal(urls.slice(1, 2), urls.slice(1, 3))).toContain('is a different one');
  });

  it('a server with the longer list serves every device with what it had', async () => {
    await (await prepare(1)).close();
    const storeOf = (count: number) => ({ engine: 'postgres' as const, shards: urls.slice(0, count) });
    let server = await TestServer.start({ store: storeOf(1) });
    const fleet = await createFleet(server);
    const own = await Promise.all(Array.from({ length: 12 }, () => fleet.createDevice({ tags: ['pump'] })));
    for (const device of own) await device.sendMail('note', JSON.stringify({ to: device.deviceId }));
    expect(await server.stop()).toBe(0);
    expect(await rebalance(urls.slice(0, 1), urls.slice(0, 3))).toMatchObject({ status: 0 });

    server = await TestServer.start({ store: storeOf(3) });
    try {
      for (const device of own.map((each) => each.on(server))) {
        expect((await device.heartbeat()).status).toBe(201);
        const mail = await device.next();
        expect(mail.json).toEqual({ to: device.deviceId });
        const acknowledged = await device.settle('ack', mail.headers.get('x-mail-id') ?? '');
        expect(acknowledged.status).toBe(200);
        expect((await device.request('POST', '/v1/datapoint/reading', '{"n":1}')).status).toBe(201);
      }
      const found = await server.admin('GET', `/fleets/${fleet.fleetId}/devices?tag=pump`);
      expect(found.body.items).toHaveLength(own.length);
      expect(server.stderr).toBe('');
    } finally {
      await server.stop();
    }
  });

  it('killed at any moment and given again, nothing is lost and nothing doubled', async () => {
    let store = await prepare(1);
    const mails = await fill(store);
    const many = Array.from({ length: 4_000 }, (_, n) =>
      deviceKeyOf('FLEET003', `MANY${String(n).padStart(6, '0')}`),
    );
    const [only] = store.shards as [PostgresShard];
    await only.devices.create(
      many.map((device) => ({
        device,
        secretDigests: [Buffer.alloc(32, 1)],
        createdAtMs: 1,
        ...undescribed,
        name: 'one of many',
        tags: ['all'],
        enabled: true,
      })),
    );
    for (let first = 0; first < many.length; first += 500)
      await only.mail.broadcast(broadcastTo(...many.slice(first, first + 500)));
    const before = await answersOf(store, mails);
    await store.close();
    /** Runs it until it has come to its end. Returns how often it was killed. */
    const killed = async (args: readonly string[]): Promise<number> => {
      for (let kills = 0; ; kills += 1) {
        const child = spawn(process.execPath, [main, ...args], { stdio: 'ignore' });
        const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
        const timer = setTimeout(() => child.kill('SIGKILL'), kills < 4 ? randomInt(400, 2_000) : 60_000);
        const status = await exited;
        clearTimeout(timer);
        if (status !== null) {
          expect(status).toBe(0);
          return kills;
        }
      }
    };
    let kills = await killed(argumentsOf(urls.slice(0, 1), urls.slice(0, 3)));
    await expectPlaced(urls.slice(0, 3), 3);
    store = await Store.open(urls.slice(0, 3));
    expect(await answersOf(store, mails)).toEqual(before);
    const counts = await Promise.all(store.shards.map((shard) => shard.devices.fleetCounts('FLEET003')));
    expect(counts.reduce((sum, { devices: count }) => sum + count, 0)).toBe(many.length);
    await store.close();
    kills += await killed(argumentsOf(urls.slice(0, 3), urls.slice(0, 2), '--leave-log'));
    await expectPlaced(urls.slice(0, 3), 2);
    store = await Store.open(urls.slice(0, 2));
    expect(await answersOf(store, mails)).toEqual(before);
    const text = `SELECT device FROM mail JOIN mailbox USING (device)
      WHERE left(device, 8) = 'FLEET003' AND mailbox.size = 1`;
    const withMail = await Promise.all(
      urls.slice(0, 2).map((url) => query<{ device: DeviceKey }>(url, text)),
    );
    expect(
      withMail
        .flat()
        .map(({ device }) => device)
        .sort(),
    ).toEqual(many);
    await expectRepeats(store);
    await store.close();
    expect(kills).toBeGreaterThan(0);
  });
});
