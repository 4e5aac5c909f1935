import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { fleetpost, fleetpostJson } from '../../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { until } from '../../harness/server/vitals.ts';

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A name has its second: the next one waits for the next. */
async function backUp(server: TestServer, ...options: string[]) {
  const second = () => Math.floor(Date.now() / 1_000);
  const last = second();
  await until(() => second() > last);
  return fleetpostJson(server, ['backup', ...options]);
}

async function backupTime(server: TestServer): Promise<number> {
  const text = await (await fetch(`${server.report.admin_url}/metrics`)).text();
  return Number(/^fleetpost_backup_timestamp_seconds (\S+)$/m.exec(text)?.[1]);
}

it('backups without a folder go to backupFolder under their time, and --keep removes older ones of this server alone', async () => {
  const backups = join(folder, 'backups');
  const data = join(folder, 'data');
  const config = { backupFolder: backups };
  const server = await TestServer.start(config, data);
  await using other = await TestServer.start(config);
  expect(await backupTime(server)).toBe(0);

  const { folder: foreign } = await backUp(other);
  expect(foreign).toMatch(/\/backups\/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ$/);
  const first = await backUp(server, '--keep', '3');
  expect(first).toMatchObject({ state: 'done', removed: 0 });
  expect(await backupTime(server)).toBeCloseTo(Date.parse(first.ended_at) / 1_000, 0);
  const copyAs = (name: string): string => {
    cpSync(first.folder, join(backups, name), { recursive: true });
    return join(backups, name);
  };
  // Folders that are no whole backup of this server under its time, or not only that, are not its own to remove.
  copyAs('before-the-upgrade');
  rmSync(join(copyAs('2020-01-01T00-00-00Z'), 'backup.json'));
  writeFileSync(join(copyAs('2020-01-02T00-00-00Z'), 'registry', 'letters.txt'), 'dear');
  writeFileSync(join(copyAs('2020-01-03T00-00-00Z'), 'registry', 'data.mdb'), 'short');
  symlinkSync(foreign, join(backups, '2020-01-04T00-00-00Z'));
  mkdirSync(join(backups, '2020-01-05T00-00-00Z'));
  writeFileSync(join(backups, '2020-01-06T00-00-00Z'), '');
  const kept = readdirSync(backups).filter((name) => name !== basename(first.folder));

  const second = await backUp(server, '--keep', '2');
  expect(second).toMatchObject({ removed: 0, reason: null });
  const third = await backUp(server, '--keep', '2');
  expect(third).toMatchObject({ removed: 1, reason: null });
  expect(readdirSync(backups)).toEqual([...kept, basename(second.folder), basename(third.folder)].sort());
  const text = await fleetpost(['backup', join(folder, 'named'), '--keep', '1', '--data', data]);
  expect(text).toMatchObject({ status: 1, stderr: expect.stringMatching(/leave out the folder, or --keep/) });
  const both = { folder: join(folder, 'named'), keep: 1 };
  expect(await server.admin('POST', '/backup', both)).toMatchObject({ status: 400 });

  // Another start knows of the last one; what is restored is another server, which owns none of these.
  await server.stop();
  const again = await TestServer.start(config, data);
  expect(await backupTime(again)).toBeCloseTo(Date.parse(third.ended_at) / 1_000, 0);
  expect((await again.admin('GET', '/backup')).body).toMatchObject({ folder: third.folder, state: 'done' });
  await again.stop();
  const restored = join(folder, 'restored');
  expect(await fleetpost(['restore', third.folder, '--data', restored])).toMatchObject({ status: 0 });
  const successor = await TestServer.start(config, restored);
  expect(await backUp(successor, '--keep', '1')).toMatchObject({ removed: 0 });
  expect(await successor.stop()).toBe(0);
  const idOf = (path: string): string => JSON.parse(readFileSync(join(path, 'manifest.json'), 'utf8')).id;
  expect(idOf(restored)).not.toBe(idOf(data));
});

it('without backupFolder they go beside the data folder', async () => {
  const data = join(folder, 'plain');
  const server = await TestServer.start({}, data);
  expect((await backUp(server)).folder).toMatch(new RegExp(`^${data}-backups/\\d{4}-`));
  await server.stop();
});
