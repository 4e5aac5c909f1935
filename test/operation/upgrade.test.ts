import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { open } from 'lmdb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { deviceIdOf } from '../../src/core/identity.ts';
import { verifyFolder } from '../../src/maintenance/verify.ts';
import { takeBackup } from '../../src/storage/lmdb/environment/backup.ts';
import { formatVersion } from '../../src/storage/lmdb/environment/manifest.ts';
import { readDevice, tagDigestBytes } from '../../src/storage/lmdb/layout/keys.ts';
import { fleetpost } from '../harness/command.ts';
import { createFleet, type TestFleet } from '../harness/device.ts';
import { freePort } from '../harness/free-port.ts';
import { watchReadiness } from '../harness/health.ts';
import { eachShard } from '../harness/log.ts';
import { type ServerReport, shards, TestServer, temporaryFolder } from '../harness/server.ts';

const mainFile = new URL('../../dist/main.js', import.meta.url).pathname;
const quiet = { start: () => {}, onRecord: () => {} };
const devicesCount = 3_000;
/** Unknown before format 4. */
const ledgerTables = ['delayed', 'due', 'receipts', 'dead'];
const folder = temporaryFolder();
const restored = join(folder, 'restored');
let report: ServerReport;
let fleet: TestFleet;
afterAll(() => rmSync(folder, { recursive: true }));

const manifestOf = (data: string) => JSON.parse(readFileSync(join(data, 'manifest.json'), 'utf8'));

function writeManifest(data: string, change: object): void {
  writeFileSync(join(data, 'manifest.json'), JSON.stringify({ ...manifestOf(data), ...change }));
}

/** Another text once a shard was written to. */
function changedAt(data: string): string {
  const files = readdirSync(join(data, 'shards')).map((name) => join(data, 'shards', name, 'data.mdb'));
  return files.map((file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs).join();
}

async function findings(path: string): Promise<string[]> {
  return (await verifyFolder(path, quiet)).findings.sentences;
}

/** Devices by the tag index of the whole folder, as often as they stand there. */
async function indexed(data: string): Promise<string[]> {
  const found: string[] = [];
  await eachShard({ ...report, data, shards: manifestOf(data).shards }, (environment) => {
    for (const key of environment.table('tags').getKeys({})) {
      const device = readDevice(key, tagDigestBytes);
      if (device.startsWith(fleet.fleetId)) found.push(deviceIdOf(device));
    }
  });
  return found.sort();
}

/** A folder as the version before left it: without the tables that it did not know, and of its format. */
beforeAll(async () => {
  const server = await TestServer.start({}, join(folder, 'data'));
  report = server.report;
  fleet = await createFleet(server);
  const path = `/fleets/${fleet.fleetId}/devices:import`;
  const imported = await fetch(`${report.admin_url}/admin/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ count: devicesCount, tags: ['hall', 'door'] }),
  });
  await imported.text();
  await (await fleet.createDevice()).sendMail();
  await server.stop();
  for (let shard = 0; shard < shards; shard += 1) {
    const root = open({ path: join(report.data, 'shards', String(shard)), noSubdir: false, maxDbs: 32 });
    for (const name of ['tags', 'names', 'seen', 'counts', 'retiring', 'sent', ...ledgerTables])
      root.openDB({ name, encoding: 'binary' }).dropSync();
    await root.close();
  }
  writeManifest(report.data, { format: 2 });
}, 120_000);

it('a folder of the format before, and a backup of it, are verified as they are', async () => {
  expect(await findings(report.data)).toEqual([]);
  const backup = join(folder, 'backup');
  const shardFolders = Array.from({ length: shards }, (_, shard) =>
    join(report.data, 'shards', String(shard)),
  );
  const registryFolder = join(report.data, 'registry');
  const source = { path: report.data, shardFolders, registryFolder, mapBytesMax: 1024 ** 3 };
  await takeBackup(source, backup);
  expect(await findings(backup)).toEqual([]);
  expect(await fleetpost(['restore', backup, '--data', restored])).toMatchObject({ status: 0 });
  expect(manifestOf(restored).format).toBe(2);
}, 60_000);

it('a start that is killed while it makes the index, or moves shards before, is made up for by the next', async () => {
  const data = report.data;
  const kills = [
    { count: shards, changes: 5 },
    { count: shards, changes: 2 },
    { count: shards + 2, changes: 4 },
    { count: shards, changes: 9 },
  ];
  for (const { count, changes } of kills) {
    const flags = ['--shards', String(count), '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
    const args = [mainFile, 'serve', '--no-parent', '--data', data, ...flags];
    const child = spawn(process.execPath, args, { stdio: 'ignore' });
    const exited = once(child, 'exit');
    let last = changedAt(data);
    for (let seen = 0; seen < changes && manifestOf(data).format === 2; ) {
      await wait(1);
      const now = changedAt(data);
      if (now !== last) seen += 1;
      last = now;
    }
    child.kill('SIGKILL');
    await exited;
    if (manifestOf(data).format === formatVersion) {
      // Too late: it was whole, and is made anew.
      expect(await findings(data)).toEqual([]);
      writeManifest(data, { format: 2 });
    }
  }
  await using server = await TestServer.start({ shards: shards + 1 }, data);
  expect(server.stderr).toMatch(new RegExp(`Indexed ${devicesCount + 1} devices in`));
  await server.stop();
  expect(manifestOf(data)).toMatchObject({ format: formatVersion, shards: shards + 1 });
  expect(await findings(data)).toEqual([]);
  const ids = await indexed(data);
  expect([ids.length, new Set(ids).size]).toEqual([2 * devicesCount, devicesCount]);
}, 180_000);

it('a backup of the format before is restored, served, and keeps its index from then on', async () => {
  await using server = await TestServer.start({}, restored);
  expect(server.stderr).toMatch(/Indexed \d+ devices in/);
  expect(manifestOf(restored).format).toBe(formatVersion);
  fleet.server = server;
  const device = await fleet.createDevice({ tags: ['hall'] });
  await server.admin('PATCH', device.adminPath, { tags: ['attic', 'hall'] });
  await server.stop();
  await using again = await TestServer.start({}, restored);
  expect(again.stderr).not.toMatch(/Indexed/);
  await again.stop();
  expect(await findings(restored)).toEqual([]);
  expect((await indexed(restored)).filter((id) => id === device.deviceId)).toHaveLength(2);
}, 120_000);

it('a folder of format 3, which has no receipts yet, is verified, then indexed and served', async () => {
  for (let shard = 0; shard < shards; shard += 1) {
    const root = open({ path: join(restored, 'shards', String(shard)), noSubdir: false, maxDbs: 32 });
    for (const name of [...ledgerTables, 'names', 'seen', 'counts', 'retiring'])
      root.openDB({ name, encoding: 'binary' }).dropSync();
    await root.close();
  }
  writeManifest(restored, { format: 3 });
  expect(await findings(restored)).toEqual([]);
  const admin = `127.0.0.1:${await freePort()}`;
  let isUp = false;
  const starting = watchReadiness(`http://${admin}`, () => isUp);
  await using server = await TestServer.start({ admin }, restored);
  isUp = true;
  expect(await starting).toContain('upgrading');
  expect(server.stderr).toMatch(/Indexed \d+ devices in/);
  expect(manifestOf(restored).format).toBe(formatVersion);
  fleet.server = server;
  const device = await fleet.createDevice();
  const { mailId } = await device.sendMail();
  expect((await device.settle('ack', mailId)).status).toBe(200);
  await server.stop();
  expect(await findings(restored)).toEqual([]);
}, 120_000);
