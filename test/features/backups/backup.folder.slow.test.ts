import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { verifyFolder } from '../../../src/maintenance/verify.ts';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { fleetpost, fleetpostJson } from '../../harness/server/command.ts';
import { shards, TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { until } from '../../harness/server/vitals.ts';
import { openEnvironment } from '../../harness/storage/environment.ts';
import { readRecords } from '../../harness/storage/log.ts';

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const quiet = { start: () => {}, onRecord: () => {} };

async function expectSound(path: string): Promise<void> {
  expect((await verifyFolder(path, quiet)).findings.sentences).toEqual([]);
}

/** Sends, fetches and settles until it is told to stop; every answer must be a success. */
class Load {
  readonly stored: string[] = [];
  readonly #devices: readonly TestDevice[];
  readonly #running: Promise<unknown>;
  #stopped = false;

  constructor(devices: readonly TestDevice[]) {
    this.#devices = devices;
    this.#running = Promise.all(devices.map((device) => this.#run(device)));
    // Told by `stop`, where a failure belongs to the test.
    this.#running.catch(() => {});
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #run(device: TestDevice): Promise<void> {
    for (let n = 0; !this.#stopped; n += 1) {
      const payload = JSON.stringify({ device: device.deviceId, n, filling: 'x'.repeat(1_000) });
      expect((await device.request('POST', '/v1/datapoint/reading', payload)).status).toBe(201);
      this.stored.push(payload);
      expect((await device.heartbeat()).status).toBe(201);
      expect((await device.sendMail('note', payload)).status).toBe(201);
      const other = this.#devices[n % this.#devices.length] as TestDevice;
      expect((await other.sendMail('note', '{}')).status).toBe(201);
      const mailId = String((await device.next()).headers.get('x-mail-id'));
      expect((await device.settle(n % 3 === 0 ? 'requeue' : 'ack', mailId)).status).toBe(200);
    }
  }
}

it('a backup that is taken under load and restored elsewhere is sound, serves, and has all that was answered before', async () => {
  await using server = await TestServer.start();
  const fleet = await createFleet(server, { mailbox_mails_max: 65_535 });
  const devices = await Promise.all(Array.from({ length: 6 }, () => fleet.createDevice()));
  const load = new Load(devices);
  await until(() => load.stored.length > 40);
  const before = [...load.stored];
  const at = `/fleets/${fleet.fleetId}`;
  await server.admin('PUT', `${at}/consumers/billing`, {});
  await server.admin('PUT', `${at}/forwarders/hook`, { type: 'webhook', url: 'http://127.0.0.1:9/' });
  const backup = join(folder, 'backup');
  const report = await fleetpostJson(server, ['backup', backup]);
  expect(report).toMatchObject({ folder: backup, state: 'done', reason: null });
  await load.stop();
  await expectSound(backup);

  const data = join(folder, 'restored');
  const restored = await fleetpost(['restore', backup, '--data', data]);
  expect(restored).toMatchObject({ status: 0, stderr: '' });
  const verified = await fleetpost(['verify', '--data', data, '--json']);
  expect(verified).toMatchObject({ status: 0, stderr: '' });
  expect(JSON.parse(verified.stdout)).toMatchObject({
    ...{ shards, devices: 6, consumers: 1, forwarders: 1 },
    ...{ findings: [], findings_total: 0 },
  });
  await using other = await TestServer.start({}, data);
  // Neither the token nor the TLS key was in the backup.
  expect(other.token).not.toBe(server.token);
  for (const device of devices) {
    expect((await device.on(other).heartbeat()).status).toBe(201);
    const head = await device.on(other).next();
    expect(head.status).toBe(200);
    expect((await device.on(other).settle('ack', String(head.headers.get('x-mail-id')))).status).toBe(200);
    expect((await device.on(other).request('POST', '/v1/datapoint/reading', { more: 1 })).status).toBe(201);
  }
  expect(await other.stop()).toBe(0);
  const found = new Set((await readRecords(other.report)).map(({ payload }) => payload));
  expect(before.filter((payload) => !found.has(payload))).toEqual([]);
  await expectSound(data);
});

it('the actions are copied in front of all shards, restored, verified, and looked at by a start', async () => {
  const stopped = await TestServer.start();
  await stopped.stop();
  const actions = (data: string) => join(data, 'actions');
  const openActions = (data: string) => openEnvironment(actions(data), ['written by this test']);
  const written = openActions(stopped.report.data);
  await written.write(() =>
    written.table('written by this test').putSync(Buffer.from('k'), Buffer.alloc(9_000, 7)),
  );
  await written.close();
  await using server = await TestServer.start({}, stopped.report.data);
  const backup = join(folder, 'with-actions');
  await fleetpostJson(server, ['backup', backup]);
  await expectSound(backup);
  const { files } = JSON.parse(readFileSync(join(backup, 'backup.json'), 'utf8'));
  const shardFiles = Array.from({ length: shards }, (_, shard) => `shards/${shard}/data.mdb`);
  expect(files.map(({ path }: { path: string }) => path)).toEqual([
    'actions/data.mdb',
    'control/data.mdb',
    ...shardFiles,
    'registry/data.mdb',
  ]);

  const data = join(folder, 'restored-actions');
  expect(await fleetpost(['restore', backup, '--data', data])).toMatchObject({ status: 0, stderr: '' });
  await expectSound(data);
  const restored = openActions(data);
  expect(restored.table('written by this test').getBinary(Buffer.from('k'))).toEqual(Buffer.alloc(9_000, 7));
  await restored.close();
  truncateSync(join(actions(data), 'data.mdb'), 8_192);
  expect((await verifyFolder(data, quiet)).findings.sentences.join()).toMatch(/actions/);
  const refused = await fleetpost([
    'serve',
    '--data',
    data,
    '--listen',
    '127.0.0.1:0',
    '--admin',
    '127.0.0.1:0',
  ]);
  expect(refused).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/actions\/data\.mdb is damaged/),
  });
  truncateSync(join(actions(data), 'data.mdb'), 0);
  expect((await verifyFolder(data, quiet)).findings.sentences).toEqual(['actions/data.mdb: it is cut off']);
});

it('a backup has a folder of its own, and there is one at a time', async () => {
  await using server = await TestServer.start();
  const start = (path: unknown) => server.admin('POST', '/backup', { folder: path });
  expect(await server.admin('GET', '/backup')).toMatchObject({
    status: 404,
    body: { error: 'backup_not_found' },
  });
  expect(await start('relative/folder')).toMatchObject({ status: 400, body: { error: 'invalid_body' } });
  expect(await start(join(server.report.data, 'backup'))).toMatchObject({ status: 409 });
  expect(await start(server.report.data)).toMatchObject({ status: 409, body: { error: 'unusable_folder' } });
  const taken = join(folder, 'taken');
  mkdirSync(taken);
  writeFileSync(join(taken, 'letters.txt'), 'dear');
  const refused = await fleetpost(['backup', taken, '--data', server.report.data]);
  expect(refused).toMatchObject({ status: 1, stderr: expect.stringMatching(/is not empty/) });
  expect(readdirSync(taken)).toEqual(['letters.txt']);
  expect(await start(join(taken, 'letters.txt'))).toMatchObject({ status: 409 });
  // A folder is inside also by way of a link, and not for a name that only begins like the folder above.
  symlinkSync(server.report.data, join(folder, 'link'));
  for (const path of [join(folder, 'link', 'backup'), join(server.report.data, '..backup')]) {
    expect(await start(path)).toMatchObject({ status: 409, body: { msg: expect.stringMatching(/inside/) } });
  }
  // The main thread must not try for ever where nothing can be made.
  expect(await start('/proc/self/x')).toMatchObject({ status: 409, body: { error: 'unusable_folder' } });

  const [one, two] = await Promise.all([start(join(folder, 'one')), start(join(folder, 'two'))]);
  expect(one).toMatchObject({ status: 202, body: { state: 'running' } });
  expect(two).toMatchObject({ status: 409, body: { error: 'backup_running' } });
  await until(async () => (await server.admin('GET', '/backup')).body.state === 'done');
  await expectSound(join(folder, 'one'));
  expect(existsSync(join(folder, 'two'))).toBe(false);
});

it('a backup that was cut off, is not whole or was changed is not restored; nor is one over other data', async () => {
  await using server = await TestServer.start();
  const backup = join(folder, 'broken');
  await fleetpostJson(server, ['backup', backup]);
  const restore = async (data = join(folder, 'nowhere')) =>
    (await fleetpost(['restore', backup, '--data', data])).stderr;
  expect(await restore(server.report.data)).toMatch(/is not empty/);
  expect((await fleetpost(['serve', '--data', backup])).stderr).toMatch(/is a backup. Restore it/);

  const file = join(backup, 'shards', '0', 'data.mdb');
  const bytes = readFileSync(file);
  const changed = Buffer.from(bytes);
  changed[changed.length - 100] = 0xff ^ (changed[changed.length - 100] ?? 0);
  writeFileSync(file, changed);
  const half = join(folder, 'half');
  expect(await restore(half)).toMatch(/was changed since it was written/);
  expect((await fleetpost(['serve', '--data', half])).stderr).toMatch(/not a Fleetpost data folder/);
  expect((await verifyFolder(backup, quiet)).findings.sentences[0]).toMatch(/not what was backed up/);
  truncateSync(file, 8_192);
  expect(await restore()).toMatch(/is not whole: shards\/0\/data.mdb has 8192 of/);
  writeFileSync(file, bytes);

  // A file that is not its own is not read: it may have no end, or be another's.
  const aside = join(folder, 'aside');
  mkdirSync(aside);
  writeFileSync(join(aside, 'data.mdb'), bytes);
  const manifest = join(backup, 'backup.json');
  const written = readFileSync(manifest, 'utf8');
  const make = { link: () => symlinkSync('/dev/zero', file), pipe: () => execFileSync('mkfifo', [file]) };
  for (const kind of ['link', 'pipe'] as const) {
    rmSync(file);
    make[kind]();
    expect(await restore()).toMatch(/shards\/0\/data.mdb is not a regular file/);
    expect(existsSync(join(folder, 'nowhere', 'shards'))).toBe(false);
  }
  rmSync(join(backup, 'shards', '0'), { recursive: true });
  symlinkSync(aside, join(backup, 'shards', '0'));
  expect(await restore()).toMatch(/shards\/0\/data.mdb is not a regular file/);
  rmSync(join(backup, 'shards', '0'));
  mkdirSync(join(backup, 'shards', '0'));
  writeFileSync(file, bytes);
  const unfinished = JSON.parse(written);
  unfinished.manifest.complete = false;
  writeFileSync(manifest, JSON.stringify(unfinished));
  expect(await restore()).toMatch(/first start/);
  rmSync(manifest);
  execFileSync('mkfifo', [manifest]);
  expect(await restore()).toMatch(/backup.json is not a regular file/);
  rmSync(manifest);
  expect(await restore()).toMatch(/not a complete backup|is not whole/);
});

it('a server that stops or dies while a backup is made leaves one that nobody takes for whole', async () => {
  const server = await TestServer.start();
  const fleet = await createFleet(server);
  const device = await fleet.createDevice();
  const backup = join(folder, 'interrupted');
  expect((await server.admin('POST', '/backup', { folder: backup })).status).toBe(202);
  expect((await device.heartbeat()).status).toBe(201);
  expect(await server.stop()).toBe(0);
  if (existsSync(join(backup, 'backup.json'))) await expectSound(backup);
  else
    expect((await fleetpost(['restore', backup, '--data', join(folder, 'no')])).stderr).toMatch(
      /not a complete backup|is not whole/,
    );
  await expectSound(server.report.data);
  rmSync(server.report.data, { recursive: true, force: true });
});
