import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DeviceKey, deviceKeyLength, deviceKeyOf } from '../../../src/core/identity.ts';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { uuidBytesLength } from '../../../src/core/uuid.ts';
import { cutBatch } from '../../../src/storage/lmdb/log/log-trimmer.ts';
import { Database } from '../../../src/storage/postgres/connection/database.ts';
import { openPostgresShard } from '../../../src/storage/postgres/writes/open-shard.ts';
import { pack } from '../../../src/storage/tables/codec.ts';
import { anyObject } from '../../harness/devices/device.ts';
import { fleetpost } from '../../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { openEnvironment } from '../../harness/storage/environment.ts';
import { openShard } from '../../harness/storage/shard.ts';
import { optionsOf } from '../../storage/contract/postgres-engine.ts';
import { type Asked, answersOf } from '../shard-answers.ts';
import { type CopiedKind, copy, copyArguments, emptyDatabases } from './copying.ts';
import { type FullFolder, fillFolder, fullConfig } from './full-folder.ts';

const folder = temporaryFolder();
const log = createLog('silent');
const fiveDaysMs = 432_000_000;
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Kinds that each of the folders has. */
const ofAll = [
  ...['devices', 'tags', 'last seen', 'mailboxes', 'mails', 'delayed mails', 'receipts', 'dead letters'],
  ...['sent once', 'idempotency keys', 'records', 'audit', 'registry fleets', 'registry forwarders'],
  ...['control cursors', 'actions state', 'actions deadLetters'],
];

const shardOfFolder = (data: string, shard: number): string => join(data, 'shards', String(shard));

/** A clock that has jumped, and a log whose front was trimmed, and holes cut into it. */
async function age(data: string, shards: number): Promise<void> {
  for (let shard = 0; shard < shards; shard += 1) {
    const environment = openEnvironment(shardOfFolder(data, shard));
    const clock = { wallMs: Date.now(), jumpsMs: fiveDaysMs, aheadMs: 0, aheadSinceMs: 0 };
    const batches = environment.table('log');
    await environment.write(() => {
      environment.table('times').putSync(Buffer.from('clock'), pack(clock));
      for (const [index, { key, value }] of [...batches.getRange({})].entries()) {
        let record = 0;
        const rest = cutBatch(value, () => record++ % 3 === 1)?.rest;
        if (index < 2) batches.removeSync(key);
        else if (rest !== undefined) batches.putSync(key, rest);
      }
    });
    await environment.close();
  }
}

function askedOf({ fleet, devices }: FullFolder, data: string, shards: number): Asked {
  const mails: { device: DeviceKey; mailId: Buffer }[] = [];
  for (let shard = 0; shard < shards; shard += 1) {
    const environment = openEnvironment(shardOfFolder(data, shard));
    const push = (device: Buffer, mailId: Buffer) =>
      mails.push({ device: device.toString('latin1') as DeviceKey, mailId: Buffer.from(mailId) });
    for (const key of environment.table('receipts').getKeys({})) {
      push(key.subarray(uuidBytesLength), key.subarray(0, uuidBytesLength));
    }
    for (const { key, value } of environment.table('mail').getRange({})) {
      push(key.subarray(0, deviceKeyLength), value.subarray(0, uuidBytesLength));
    }
  }
  const keys = devices.map(({ fleetId, deviceId }) => deviceKeyOf(fleetId, deviceId));
  return { devices: keys, mails, fleetIds: [fleet.fleetId] };
}

/** Reads the answers of a folder, without changing it. */
async function answersOfFolder(data: string, shards: number, asked: Asked): Promise<unknown[]> {
  const other = `${data}.read`;
  cpSync(data, other, { recursive: true });
  const answers: unknown[] = [];
  for (let shard = 0; shard < shards; shard += 1) {
    const opened = openShard(shardOfFolder(other, shard));
    answers.push(await answersOf(opened.shard, asked));
    await opened.close();
  }
  rmSync(other, { recursive: true });
  return answers;
}

async function answersOfDatabases(urls: readonly string[], asked: Asked): Promise<unknown[]> {
  const answers: unknown[] = [];
  for (const url of urls) {
    const shard = await openPostgresShard(optionsOf(url));
    answers.push(await answersOf(shard, asked));
    await shard.close();
  }
  return answers;
}

describe.each([
  // Records that moved from three logs into one keep that they have.
  { shards: 1, made: 3 },
  { shards: 3, made: 3 },
])('a folder of $shards shards', ({ shards, made }) => {
  const data = join(folder, String(shards));
  let full: FullFolder;
  let asked: Asked;
  let urls: string[];
  let copied: CopiedKind[];

  beforeAll(async () => {
    mkdirSync(data);
    full = await fillFolder(data, made);
    if (shards !== made) await (await TestServer.start({ ...fullConfig, shards }, data)).stop();
    await age(data, shards);
    asked = askedOf(full, data, shards);
    urls = await emptyDatabases(shards);
    copied = await copy([data], urls);
  });

  it('is answered by databases as it was before', async () => {
    expect(await answersOfDatabases(urls, asked)).toEqual(await answersOfFolder(data, shards, asked));
    for (const { kind, records } of copied) {
      if (ofAll.includes(kind)) expect(records, kind).toBeGreaterThan(0);
    }
  });

  it('comes back from databases, sound, as it was, and is served on', async () => {
    const back = join(folder, `${shards}.back`);
    const kinds = await copy(urls, [back]);
    expect(kinds).toEqual(copied);
    expect(await answersOfFolder(back, shards, asked)).toEqual(await answersOfFolder(data, shards, asked));
    const verified = await fleetpost(['verify', '--data', back]);
    expect(verified).toMatchObject({ status: 0, stderr: '' });
    await expectServed(back, shards, full);
  });

  it('comes back with the times of records whose ids tell others', async () => {
    for (const url of urls) {
      const database = new Database({ url, connectionsMax: 1, timeoutMilliseconds: 10_000, log });
      // As nodes whose clocks differ wrote them.
      await database.query(
        `UPDATE record SET id = substr(int8send((stored_at_ms - position % 9) << 16), 1, 6) || substr(id, 7)`,
      );
      await database.close();
    }
    const back = join(folder, `${shards}.late`);
    await copy(urls, [back]);
    expect(await answersOfFolder(back, shards, asked)).toEqual(await answersOfDatabases(urls, asked));
  });

  it('is served on from databases', async () => {
    const store = JSON.stringify({ engine: 'postgres', shards: urls });
    await expectServed(join(folder, `${shards}.node`), shards, full, { FLEETPOST_STORE: store });
  });

  it('is refused where it does not fit, and by databases that are not empty', async () => {
    const refused = async (from: string[], to: string[]): Promise<string> => {
      const { status, stderr } = await fleetpost(copyArguments(from, to));
      expect(status).toBe(1);
      expect(stderr).not.toContain('postgres://');
      return stderr;
    };
    expect(await refused([data], urls)).toMatch(/must be empty/);
    expect(await refused([data], await emptyDatabases(shards + 1))).toMatch(
      /Start the server once with --shards/,
    );
    expect(await refused(urls, [data])).toMatch(/is not empty/);
    if (shards > 1) {
      const turned = [...urls].reverse();
      expect(await refused(turned, [join(folder, 'turned')])).toMatch(/where it does not belong/);
    }
    expect(await refused(urls.concat(urls), [join(folder, 'twice')])).toMatch(/named twice/);
  });
});

/** Devices are known, mail waits, consumers and dead letters go on from where they were. */
async function expectServed(
  data: string,
  shards: number,
  { fleet, devices, disabled, ...rest }: FullFolder,
  environment: NodeJS.ProcessEnv = {},
): Promise<void> {
  await using server = await TestServer.start({ ...fullConfig, shards }, data, { environment });
  for (const device of devices) {
    const { status } = await device.on(server).heartbeat();
    expect(status).toBe(device === disabled ? 401 : 201);
  }
  const [first] = devices;
  const mail = await first?.on(server).next();
  expect(mail).toMatchObject({ status: 200 });
  expect((await first?.on(server).settle('ack', String(mail?.headers.get('x-mail-id'))))?.status).toBe(200);

  fleet.server = server;
  await fleet.putSchema('message', 'later', anyObject);
  expect((await first?.on(server).request('POST', '/v1/msg/later', { n: 1 }))?.status).toBe(201);
  const at = `/fleets/${fleet.fleetId}`;
  const schemas = new Set<string>();
  for (;;) {
    type Batch = { batch_id: string | null; records: { record_id: string; schema: string }[] };
    const { body } = await server.admin<Batch>('POST', `${at}/consumers/billing/fetch`, { max: 100 });
    if (body.batch_id === null) break;
    for (const { record_id, schema } of body.records) {
      expect(rest.acknowledged).not.toContain(record_id);
      schemas.add(schema);
    }
    await server.admin('POST', `${at}/consumers/billing/acknowledge`, { batch_id: body.batch_id });
  }
  expect([...schemas]).toEqual(expect.arrayContaining(['reading', 'later']));
  const { body } = await server.admin<{ items: unknown[] }>('GET', `${at}/actions/relay/dead-letters`);
  expect(body.items.length).toBe(rest.deadLetters);
}

it('a database that a copy has not come to its end with is not served', async () => {
  const [url = ''] = await emptyDatabases(1);
  const database = new Database({ url, connectionsMax: 1, timeoutMilliseconds: 10_000, log });
  const data = join(folder, '1');
  await copy([data], [url]);
  await database.query('INSERT INTO copy_progress (part, done) VALUES ($1, $2)', [
    '',
    Buffer.from('another'),
  ]);
  await database.close();
  await expect(openPostgresShard(optionsOf(url))).rejects.toThrow(/is unfinished/);
  const { status, stderr } = await fleetpost(['copy', '--from', data, '--to', url]);
  expect({ status, stderr }).toMatchObject({ status: 1, stderr: expect.stringMatching(/must be empty/) });
});
