import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { verifyFolder } from '../../../src/maintenance/verify.ts';
import { takeBackup } from '../../../src/storage/lmdb/environment/backup.ts';
import { formatVersion } from '../../../src/storage/lmdb/environment/manifest.ts';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { withTypeScript } from '../../harness/machine/typescript.ts';
import { execute, fleetpostProcess } from '../../harness/server/command.ts';
import { type ServerReport, shards, TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { fillShards, readShardRecords, type ShardRecords } from '../shard-records.ts';
import { killInMove, manifestOf, phaseOf } from '../started-reshard.ts';
import { changeManifest, readFormat, toMadeUpFormat } from './made-up-format.ts';

/** More of them by `UPGRADE_KILLS=100`. */
const kills = Number(process.env.UPGRADE_KILLS ?? 4);
const devicesCount = 300;
const upgradingStart = new URL('upgrading-start.ts', import.meta.url).pathname;
const folder = temporaryFolder();
const quiet = { start: () => {}, onRecord: () => {} };
const serveFlags = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--no-parent'];

let report: ServerReport;
let device: TestDevice;
let before: ShardRecords;

beforeAll(async () => {
  await using server = await TestServer.start({}, join(folder, 'data'));
  report = server.report;
  const fleet = await createFleet(server);
  const devices = await Promise.all(Array.from({ length: devicesCount }, () => fleet.createDevice()));
  device = devices[0] as TestDevice;
  await server.stop();
  await fillShards(report);
  before = await readShardRecords(report);
  cpSync(report.data, join(folder, 'never-older'), { recursive: true });
  await toMadeUpFormat(report);
});

afterAll(() => rmSync(folder, { recursive: true }));

/** A start with the made-up step that is not interrupted. */
function upgrade(data: string) {
  return execute(process.execPath, [...withTypeScript, upgradingStart, data]);
}

/** A start that gets the signal at a random moment of its upgrade. */
async function interrupted(data: string, signal: 'SIGKILL' | 'SIGTERM'): Promise<string> {
  const child = spawn(process.execPath, [...withTypeScript, upgradingStart, data], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const exited = once(child, 'exit');
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  await once(child.stdout, 'data');
  await wait(Math.random() * 200);
  child.kill(signal);
  await exited;
  return said;
}

/** A copy of the folder in the made-up format. */
function copyOf(name: string): string {
  const data = join(folder, name);
  cpSync(report.data, data, { recursive: true });
  return data;
}

/** Everything is there as it was, and served. */
async function expectUpgraded(data: string, context: unknown, count = shards): Promise<void> {
  expect(readFormat(data)).toMatchObject({
    format: formatVersion,
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
  });
  expect(readFormat(data).upgradingFrom).toBeUndefined();
  const { records, misplaced } = await readShardRecords({ ...report, data, shards: count });
  expect(records.length).toBe(before.records.length);
  expect(records, JSON.stringify(context)).toEqual(before.records);
  expect(misplaced).toEqual([]);
  expect((await verifyFolder(data, quiet)).findings.sentences).toEqual([]);
  await using server = await TestServer.start({ shards: count }, data);
  expect((await device.on(server).heartbeat()).status).toBe(201);
}

it('a start upgrades an older folder, killed at any moment and repeated, each record once', async () => {
  const data = copyOf('killed');
  const found: unknown[] = [];
  for (let kill = 0; kill < kills; kill += 1) {
    const said = await interrupted(data, kill % 4 === 1 ? 'SIGTERM' : 'SIGKILL');
    const { format, upgradingFrom } = readFormat(data);
    found.push({ said, format, upgradingFrom });
    // No older version takes what is half done for its own.
    if (upgradingFrom !== undefined) {
      await expect(verifyFolder(data, quiet)).rejects.toThrow('Start the server, which upgrades it');
    }
    // Killed after the last change.
    if (format === formatVersion && upgradingFrom === undefined) {
      rmSync(data, { recursive: true });
      copyOf('killed');
    }
  }
  const { status, stderr } = await upgrade(data);
  expect(status, stderr).toBe(0);
  expect(stderr).toMatch(/^Upgrading \S+ from format 1 to 2 took [\d.]+ s\.$/m);
  await expectUpgraded(data, found);
  if (kills > 4) console.log(JSON.stringify(found));
});

it('an older backup is refused for what needs this version, restored, and upgraded by the first start', async () => {
  const source = {
    path: report.data,
    shardFolders: Array.from({ length: shards }, (_, shard) => join(report.data, 'shards', String(shard))),
    registryFolder: join(report.data, 'registry'),
    mapBytesMax: 1024 ** 3,
  };
  const backup = join(folder, 'backup');
  // Nobody else has it open.
  await takeBackup(source, backup, async () => () => {});
  const data = join(folder, 'restored');
  const says = async (...args: string[]) => (await fleetpostProcess(args)).stderr;
  const is =
    /^fleetpost: The backup \S+ has format 0, written by version \d+\.\d+\.\d+ of Fleetpost; this is version \d+\.\d+\.\d+, with format 2\./;
  expect(await says('verify', '--data', backup)).toMatch(is);
  expect(await says('verify', '--data', backup)).toMatch(/the first start upgrades what was restored\.$/m);
  expect(await says('restore', backup, '--data', data, '--quiet')).toMatch(/"fleetpost serve --paused"\.$/m);
  expect(existsSync(data)).toBe(false);
  expect(await fleetpostProcess(['restore', backup, '--data', data])).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('the first start upgrades it'),
  });
  expect(await upgrade(data)).toMatchObject({ status: 0 });
  await expectUpgraded(data, 'restored');
  changeManifest(join(backup, 'backup.json'), (manifest) => {
    Object.assign(manifest, { format: 7, version: '3.2.1' });
  });
  expect(await says('restore', backup, '--data', join(folder, 'newer'))).toMatch(
    /has format 7, written by version 3\.2\.1 of Fleetpost; .* Use that version or a newer one\.$/m,
  );
});

it('a folder of another format is left as it is where it cannot be upgraded, with what to do instead', async () => {
  const data = copyOf('left');
  const says = async (...args: string[]) => (await fleetpostProcess(args)).stderr;
  const serve = ['serve', '--data', data, ...serveFlags];
  expect(await says('copy', '--from', data, '--to', 'postgres://nobody@127.0.0.1:1/none')).toMatch(
    /has format 0, .* Start the server, which upgrades it, or use the version that wrote it\.$/m,
  );
  expect(await says('verify', '--data', data)).toMatch(/has format 0, .* Start the server/);
  // Format 0 was written by no version in use, and this version has no step from it.
  expect(await says(...serve)).toMatch(/has format 0, too old .* with a version in between\.$/m);
  expect(readFormat(data)).toMatchObject({ format: 0 });
  changeManifest(join(data, 'manifest.json'), (manifest) => {
    Object.assign(manifest, { format: 7, version: '3.2.1' });
  });
  const newer =
    /has format 7, written by version 3\.2\.1 of Fleetpost; .* Nothing was changed\. Run that or a newer one, or restore a backup/;
  for (const args of [serve, ['verify', '--data', data]]) expect(await says(...args)).toMatch(newer);
  expect(readFormat(data)).toMatchObject({ format: 7, version: '3.2.1' });
  // No text of a manifest reaches a terminal.
  changeManifest(join(data, 'manifest.json'), (manifest) => {
    manifest.version = '\u001b[31m1.2.3';
  });
  expect(await says(...serve)).toMatch(/written by another version of Fleetpost;/);
});

it('an older folder that was killed while its shards were moved is upgraded, then has one layout', async () => {
  for (const aim of ['copying', 'removing'] as const) {
    const data = join(folder, aim);
    cpSync(join(folder, 'never-older'), data, { recursive: true });
    await killInMove(data, manifestOf(data).shards + 1, aim, 20);
    const { shards: count } = manifestOf(data);
    const phase = phaseOf(manifestOf(data));
    await toMadeUpFormat({ ...report, data, shards: count });
    expect(await upgrade(data)).toMatchObject({ status: 0 });
    const server = await TestServer.start({ shards: count }, data);
    await server.stop();
    expect(phaseOf(manifestOf(data))).toBe('none');
    await expectUpgraded(data, { aim, phase, count }, count);
  }
});
