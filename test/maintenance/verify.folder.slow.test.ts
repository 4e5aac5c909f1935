import { spawn } from 'node:child_process';
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { deviceKeyOf } from '../../src/core/identity.ts';
import { generateUuid } from '../../src/core/uuid.ts';
import { markReplaceable, withMail } from '../../src/domain/mail/replaceable-mails.ts';
import { shardOf } from '../../src/domain/placement.ts';
import { registryTables } from '../../src/maintenance/environments.ts';
import { verifyFolder } from '../../src/maintenance/verify.ts';
import { checkEnvironment } from '../../src/storage/lmdb/environment/check-environment.ts';
import { keyOfDevice, tagDigestBytes } from '../../src/storage/lmdb/layout/keys.ts';
import type { Tables } from '../../src/storage/lmdb/layout/tables.ts';
import { openTables } from '../../src/storage/lmdb/layout/tables.ts';
import { segmentKey } from '../../src/storage/lmdb/log/log-index.ts';
import { createFleet, type TestDevice } from '../harness/devices/device.ts';
import { fleetpost } from '../harness/server/command.ts';
import {
  mainFile,
  ownCertificate,
  type ServerReport,
  shards,
  TestServer,
  temporaryFolder,
} from '../harness/server/server.ts';
import { openEnvironment } from '../harness/storage/environment.ts';
import { eachShard } from '../harness/storage/log.ts';

const pageBytes = 4_096;
const quiet = { start: () => {}, onRecord: () => {} };
const folder = temporaryFolder();
const sound = join(folder, 'sound');
let report: ServerReport;
let device: TestDevice;
/** A device in the same shard, behind it in every table, with one mail. */
let lastDevice: TestDevice;

/** One folder with something in every table, copied for each test. */
beforeAll(async () => {
  await using server = await TestServer.start(ownCertificate, sound);
  report = server.report;
  const fleet = await createFleet(server);
  device = await fleet.createDevice({ tags: ['hall'] });
  for (let n = 0; n < 299; n += 1) await device.sendMail('note', `{"n":${n}}`);
  const head = async () => String((await device.next()).headers.get('x-mail-id'));
  const lastFleet = await createFleet(server, { fleet_id: 'zzzzzzzz' });
  do lastDevice = await lastFleet.createDevice();
  while (shardOfDevice(lastDevice) !== shardOfDevice(device));
  await lastDevice.sendMail('note', '{"last":true}');
  await device.settle('requeue', await head());
  await device.settle('ack', await head());
  await device.settle('reject', (await device.sendMail('note', '{"dead":true}')).mailId);
  await device.sendMail('note', '{}', '?replace_key=set-point');
  await device.sendMail('note', '{}', `?deliver_at=${new Date(Date.now() + 86_400_000).toISOString()}`);
  const key = { 'Idempotency-Key': `${Date.now().toString(16).padStart(12, '0')}7abc8def0123456789ab` };
  expect((await device.request('POST', '/v1/datapoint/reading', { a: 1 }, key)).status).toBe(201);
  expect((await device.request('POST', '/v1/datapoint/reading', { a: 2 })).status).toBe(201);
  expect(await server.stop()).toBe(0);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function shardOfDevice({ fleetId, deviceId }: TestDevice): number {
  return shardOf(deviceKeyOf(fleetId, deviceId), shards);
}

let copies = 0;
function copy(): string {
  copies += 1;
  const path = join(folder, `copy-${copies}`);
  cpSync(sound, path, { recursive: true });
  // Node 24 gives the copy of a folder the rights of a new one.
  chmodSync(path, 0o700);
  return path;
}

async function findings(path: string): Promise<string[]> {
  return (await verifyFolder(path, quiet)).findings.sentences;
}

async function serve(path: string): Promise<string> {
  const loopback = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
  const { status, stderr } = await fleetpost(['serve', '--data', path, ...loopback]);
  expect(status).toBe(1);
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
  return stderr;
}

function change(file: string, edit: (bytes: Buffer) => void): void {
  const bytes = readFileSync(file);
  edit(bytes);
  writeFileSync(file, bytes);
}

it('verify walks a folder that a server has left and finds it sound', async () => {
  const { status, stdout } = await fleetpost(['verify', '--data', copy()]);
  expect(status).toBe(0);
  expect(stdout).toMatch(
    new RegExp(
      `${shards} shards, 2 fleets, \\d schemas, 0 actions, 0 dead letters of actions, 0 consumers, 0 forwarders, \\d+ devices, 300 mails, 3\\d\\d log records, 1 idempotency key\\b`,
    ),
  );
  expect(stdout).toMatch(/OK, no problems found/);
});

it('a folder whose file is cut off, missing or overwritten is refused in a sentence, and left as it is', async () => {
  const cases: [name: string, damage: (path: string) => void, reason: RegExp][] = [
    ['registry', (path) => rmSync(join(path, 'registry'), { recursive: true }), /no such file.*backup/],
    ['actions', (path) => rmSync(join(path, 'actions'), { recursive: true }), /no such file.*backup/],
    ['control', (path) => rmSync(join(path, 'control'), { recursive: true }), /no such file.*backup/],
    ['registry/data.mdb', (path) => writeFileSync(join(path, 'registry/data.mdb'), ''), /cut off/],
    [
      'shards/0',
      (path) => truncateSync(join(path, 'shards/0/data.mdb'), 6 * pageBytes),
      /damaged: the file ends/,
    ],
  ];
  for (const [, damage, reason] of cases) {
    const path = copy();
    damage(path);
    const before = readdirSync(path, { recursive: true }).sort();
    expect(await serve(path)).toMatch(reason);
    expect(readdirSync(path, { recursive: true }).sort()).toEqual(before);
  }
});

it('every kind of damage that a start can see is told from what is sound', () => {
  // The shard with mail has more pages in use than are cut off and overwritten here, whatever devices fell to it.
  const number = String(shardWithMail(sound));
  const shard = (path: string) => join(path, 'shards', number);
  const refused = (damage: (file: string) => void): string => {
    const path = copy();
    damage(join(shard(path), 'data.mdb'));
    try {
      checkEnvironment(shard(path));
      return 'taken';
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(refused(() => {})).toBe('taken');
  expect(refused((file) => rmSync(file))).toMatch(/cannot be read: ENOENT/);
  expect(refused((file) => truncateSync(file, 0))).toMatch(/cut off/);
  expect(refused((file) => truncateSync(file, pageBytes + 10))).toMatch(/cut off/);
  expect(refused((file) => change(file, (bytes) => bytes.fill(0xab, 0, pageBytes)))).toMatch(/overwritten/);
  expect(refused((file) => change(file, (bytes) => bytes.fill(0, pageBytes, 2 * pageBytes)))).toMatch(
    /overwritten/,
  );
  expect(refused((file) => change(file, (bytes) => bytes.fill(0xab, 2 * pageBytes)))).toMatch(
    /is overwritten/,
  );
  for (let pages = 2; pages < 10; pages += 1) {
    expect(refused((file) => truncateSync(file, pages * pageBytes))).toMatch(/the file ends before page \d+/);
  }
});

it('verify finds every page in use that was overwritten, whatever with, and never fails itself', async () => {
  const path = copy();
  const file = join(path, 'shards', String(shardWithMail(path)), 'data.mdb');
  const whole = readFileSync(file);
  const pages = whole.length / pageBytes;
  let found = 0;
  for (let page = 2; page < pages; page += 1) {
    writeFileSync(file, whole);
    const value = [0, 0xff, 0x5a][page % 3];
    change(file, (bytes) => bytes.fill(value ?? 0, page * pageBytes, (page + 1) * pageBytes));
    if ((await findings(path)).length > 0) found += 1;
  }
  // Pages that are free may hold anything.
  expect(found).toBeGreaterThan(pages / 3);
  writeFileSync(file, whole);
  expect(await findings(path)).toEqual([]);
});

function shardWithMail(path: string): number {
  const sizes = Array.from({ length: shards }, (_, shard) => {
    return readFileSync(join(path, 'shards', String(shard), 'data.mdb')).length;
  });
  return sizes.indexOf(Math.max(...sizes));
}

const tampering: [what: string, edit: (tables: Tables, key: Buffer) => void, finding: RegExp][] = [
  [
    'a mailbox of another size',
    ({ mailboxes }, key) => bump(mailboxes, key, 3),
    /its size is \d+, and it has 299 mails/,
  ],
  ['a mailbox of another head', ({ mailboxes }, key) => bump(mailboxes, key, 9), /its head is/],
  ['a mailbox of an earlier tail', ({ mailboxes }, key) => zero(mailboxes, key, 10, 16), /its tail is/],
  ['a mailbox that is gone', ({ mailboxes }, key) => mailboxes.removeSync(key), /no record of its mailbox/],
  ['a device that is gone', ({ devices }, key) => devices.removeSync(key), /its device does not exist/],
  [
    'a device that does not decode',
    ({ devices }, key) => devices.putSync(key, Buffer.of(1, 9)),
    /does not decode/,
  ],
  ['a mail that is gone', ({ mail }) => removeLast(mail), /its mail is not there/],
  ['an expiry that is gone', ({ expiry }) => removeLast(expiry), /no entry of its expiry/],
  ['a requeued entry that is gone', ({ requeued }) => removeLast(requeued), /no entry says where it is/],
  ['an idempotency entry that is cut', ({ idempotency }) => cut(idempotency), /idempotency.*does not decode/],
  ['an entry of a tag that is gone', ({ tags }) => removeLast(tags), /a tag of it is not in the index/],
  [
    'an entry of a tag that the device has not',
    ({ tags }, key) => tags.putSync(Buffer.concat([Buffer.alloc(tagDigestBytes), key]), Buffer.alloc(0)),
    /tags.*does not have the tag/,
  ],
  [
    "an entry of a tag that is another device's",
    ({ tags }, key) =>
      tags.putSync(Buffer.concat([Buffer.alloc(tagDigestBytes), key.fill('x', 8)]), Buffer.alloc(0)),
    /tags.*its device does not exist/,
  ],
  [
    'a time of last sight that is gone',
    ({ seen }) => removeLast(seen),
    /when it was seen is not in the index/,
  ],
  [
    'a name that the device has not',
    ({ names }, key) =>
      names.putSync(
        Buffer.concat([key.subarray(0, 8), Buffer.from('x\0'), key.subarray(8)]),
        Buffer.alloc(0),
      ),
    /names.*has another name/,
  ],
  ['a fleet that is not counted', ({ counts }) => removeLast(counts), /are not counted/],
  [
    'a mail that was sent for nothing',
    ({ sent }, key) => sent.putSync(Buffer.concat([generateUuid(), key]), generateUuid()),
    /sent.*does not decode/,
  ],
  ['a time of delivery that is gone', ({ due }) => removeLast(due), /delayed.*no entry of its time/],
  ['a delayed mail that is gone', ({ delayed }) => removeLast(delayed), /due.*its mail is not there/],
  ['a delayed mail that is cut', ({ delayed }) => cut(delayed, 70), /delayed.*does not decode/],
  ['a receipt that is cut', ({ receipts }) => cut(receipts, 20), /receipts.*does not decode/],
  [
    'a dead letter that is cut',
    ({ dead }) => cut(dead),
    /dead.*the payload is not a JSON object|does not decode/,
  ],
  [
    'queues that do not decode',
    ({ queues }, key) => queues.putSync(key, Buffer.of(1, 9)),
    /queues.*does not decode/,
  ],
  [
    'queues of no device',
    ({ queues }, key) => queues.putSync(key.fill('x', 8), Buffer.alloc(0)),
    /queues.*its device does not exist/,
  ],
  [
    'replaceable mails that do not decode',
    ({ replaceable }, key) => replaceable.putSync(key, Buffer.of(1, 9)),
    /replaceable.*does not decode/,
  ],
  [
    'a replaceable mail that is gone',
    ({ replaceable }, key) => {
      const mailId = generateUuid();
      markReplaceable(mailId);
      replaceable.putSync(key, withMail(Buffer.alloc(0), mailId, 'mode'));
    },
    /replaceable.*one of its mails is not there/,
  ],
  ['a batch of the log that is cut', ({ log }) => cut(log), /the batch does not decode/],
  [
    "a value of the log's index that is cut",
    ({ logIndex }) => logIndex.putSync(segmentKey(0, 0), Buffer.alloc(3)),
    /logIndex.*does not decode/,
  ],
  [
    "a record that the log's index lacks",
    ({ logIndex }) => logIndex.putSync(segmentKey(0, 0), Buffer.alloc(0)),
    /log.*not in the index of the log/,
  ],
];

it.each(tampering)('verify finds %s', async (_, edit, finding) => {
  const path = copy();
  const key = Buffer.from(keyOfDevice(deviceKeyOf(device.fleetId, device.deviceId)));
  await eachShard({ ...report, data: path }, async (environment) => {
    const tables = openTables(environment);
    if (tables.devices.getBinary(key) === undefined) return;
    await environment.write(() => edit(tables, key));
  });
  expect((await findings(path)).join('\n')).toMatch(finding);
});

type Table = Tables['mail'];

function bump(table: Table, key: Buffer, at: number): void {
  const value = Buffer.from(table.getBinary(key) ?? []);
  value[at] = (value[at] ?? 0) + 1;
  table.putSync(key, value);
}

function zero(table: Table, key: Buffer, from: number, to: number): void {
  table.putSync(key, Buffer.from(table.getBinary(key) ?? []).fill(0, from, to));
}

function removeLast(table: Table): void {
  for (const key of [...table.getKeys({ reverse: true, limit: 1 })]) table.removeSync(key);
}

function cut(table: Table, bytes = 1): void {
  for (const { key, value } of [...table.getRange({ limit: 1 })]) {
    table.putSync(key, Buffer.from(value.subarray(0, Math.max(0, value.length - bytes))));
  }
}

it('a page that is damaged inside costs the devices that are on it a 500, and their neighbours nothing', async () => {
  const path = copy();
  // The last leaf of the mail: a start has no reason to look at it.
  const file = join(path, 'shards', String(shardOfDevice(device)), 'data.mdb');
  const marker = Buffer.from('{"last":true}');
  change(file, (bytes) => {
    for (let at = bytes.indexOf(marker); at >= 0; at = bytes.indexOf(marker, at + 1)) {
      const start = Math.floor(at / pageBytes) * pageBytes;
      bytes.fill(0, start, start + pageBytes);
    }
  });
  await using server = await TestServer.start({}, path);
  for (let n = 0; n < 20; n += 1) {
    const [damaged, ...others] = await Promise.all([
      lastDevice.on(server).next(),
      device.on(server).next(),
      device.on(server).heartbeat(),
      lastDevice.on(server).heartbeat(),
      device.on(server).request('POST', '/v1/datapoint/reading', { n }),
    ]);
    expect(damaged).toMatchObject({ status: 500, json: { error: 'internal_error' } });
    expect(others.map(({ status }) => status)).toEqual([200, 201, 201, 201]);
  }
  const mailId = String((await device.on(server).next()).headers.get('x-mail-id'));
  expect((await device.on(server).settle('ack', mailId)).status).toBe(200);
  expect(server.isRunning).toBe(true);
});

it('of two servers that start at once on one folder one has it, and a kill leaves it free at once', async () => {
  const path = copy();
  const start = () => {
    const args = [
      mainFile,
      'serve',
      '--no-parent',
      '--data',
      path,
      '--listen',
      '127.0.0.1:0',
      '--admin',
      '127.0.0.1:0',
      '--json',
    ];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let stderr = '';
    child.stderr.on('data', (text) => {
      stderr += text;
    });
    const ready = new Promise<boolean>((resolve) => {
      child.stdout.once('data', () => resolve(true));
      child.once('exit', () => resolve(false));
    });
    return {
      child,
      ready,
      exited: new Promise((resolve) => child.once('exit', resolve)),
      text: () => stderr,
    };
  };
  const both = [start(), start()];
  const ready = await Promise.all(both.map((one) => one.ready));
  expect(ready.filter(Boolean)).toHaveLength(1);
  const [winner, loser] = ready[0] ? both : both.toReversed();
  // The loser may come between the winner's lock and its name in the file.
  expect(loser?.text()).toMatch(new RegExp(`in use by (process ${winner?.child.pid}|another process)\\. `));
  expect((await fleetpost(['verify', '--data', path])).stderr).toMatch(/in use by process/);
  winner?.child.kill('SIGKILL');
  await winner?.exited;
  await using server = await TestServer.start({}, path);
  expect(server.isRunning).toBe(true);
});

it('a stored schema that cannot be run, or would run as a promise, is 503 for its devices and for nobody else', async () => {
  const path = copy();
  const schemas = {
    async: '{"$async":true,"required":["b"]}',
    unknown: '{"properties":{"a":{"nullable":true}}}',
    empty: '{"properties":null}',
    torn: '{"properties":',
  };
  const environment = openEnvironment(join(path, 'registry'), registryTables);
  for (const [name, text] of Object.entries(schemas)) {
    environment.table('schemas').putSync(Buffer.from(`${device.fleetId}0${name}`), Buffer.from(text));
  }
  await environment.close();
  await using server = await TestServer.start({}, path);
  const sender = device.on(server);
  for (const name of Object.keys(schemas)) {
    const answer = await sender.request('POST', `/v1/datapoint/${name}`, { a: 1 });
    expect([name, answer.status, answer.json.error]).toEqual([name, 503, 'unavailable']);
  }
  expect((await sender.request('POST', '/v1/datapoint/reading', { a: 1 })).status).toBe(201);
  // Workers tell the main thread behind their answers.
  const disabled = async (): Promise<string[]> => {
    const path = `/fleets/${device.fleetId}/schemas`;
    const { body } = await server.admin<{ items: { name: string; disabled: string | null }[] }>('GET', path);
    return body.items.filter((schema) => schema.disabled === 'it cannot be compiled').map(({ name }) => name);
  };
  await expect.poll(async () => (await disabled()).sort()).toEqual(Object.keys(schemas).sort());
  expect(server.stderr.match(/schema disabled/g)).toHaveLength(4);
  await server.admin('PUT', `/fleets/${device.fleetId}/schemas/datapoint/async`, { required: ['b'] });
  expect((await sender.request('POST', '/v1/datapoint/async', { a: 1 })).json.error).toBe('schema_mismatch');
});
