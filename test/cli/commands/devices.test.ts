import { beforeAll, expect, it } from 'vitest';
import { createFleet, type TestFleet } from '../../harness/devices/device.ts';
import { fleetpost, fleetpostJson } from '../../harness/server/command.ts';
import { TestServer } from '../../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
let ids: string[];
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
  ids = await Promise.all(Array.from({ length: 12 }, async () => (await fleet.createDevice()).deviceId));
  ids.sort();
  const [device] = ids;
  const named = ['--fleet', fleet.fleetId, '--device', String(device), '--add-tag', 'old'];
  // A device that is named needs no confirmation.
  expect(await fleetpostJson(server, ['device', 'change', ...named])).toMatchObject({ changed: 1 });
});

const inFleet = (...args: string[]): string[] => [...args, '--fleet', fleet.fleetId];
const run = (...args: string[]) => fleetpostJson(server, inFleet(...args));
const count = async (): Promise<number> => (await run('device', 'list')).items.length;

it.each([
  [['device', 'change', '--all', '--disable'], 'disable devices'],
  [['device', 'change', '--tag', 'old', '--add-tag', 'b'], 'change the tags of devices'],
  [['device', 'delete', '--all'], 'delete devices'],
  [['mail', 'broadcast', '--all', '--name', 'a'], 'send this mail to devices'],
  [['dead-letter', 'replay', '--all'], 'replay dead letters'],
  [['dead-letter', 'drop', '--all'], 'drop dead letters'],
])('%j needs --yes where nobody can be asked', async (args, deed) => {
  const result = await fleetpost([...inFleet(...args), '--data', server.report.data]);
  expect(result).toEqual({
    status: 1,
    stdout: '',
    stderr: `fleetpost: This would ${deed}: confirm it with --yes, or see which with --dry-run.\n`,
  });
  expect((await fleetpost([...inFleet(...args), '--yes', '--dry-run'])).stderr).toContain('cannot be used');
});

it('--dry-run tells the count and the first ten, and changes nothing', async () => {
  const all = { dry_run: true, count: 12, first: ids.slice(0, 10) };
  const tagged = { dry_run: true, count: 1, first: ids.slice(0, 1) };
  expect(await run('device', 'delete', '--all', '--dry-run')).toEqual(all);
  expect(await run('device', 'delete', '--tag', 'old', '--dry-run')).toEqual(tagged);
  expect(await run('device', 'delete', String(ids[0]), '--dry-run')).toEqual(tagged);
  expect(await run('device', 'change', '--all', '--disable', '--dry-run')).toEqual(all);
  expect(await run('mail', 'broadcast', '--tag', 'old', '--name', 'a', '--dry-run')).toEqual(tagged);
  const both = ['--tag', 'old', '--tag', 'new', '--name', 'a', '--dry-run'];
  expect(await run('mail', 'broadcast', ...both)).toEqual({ dry_run: true, count: 0, first: [] });
  expect(await run('mail', 'broadcast', '--all', '--name', 'a', '--dry-run')).toEqual(all);
  expect(await run('dead-letter', 'drop', '--all', '--dry-run')).toEqual({
    dry_run: true,
    count: 0,
    first: [],
  });
  expect((await run('device', 'list', '--enabled')).items).toHaveLength(12);
  expect((await run('broadcast', 'list')).items).toEqual([]);
  const text = await fleetpost([
    ...inFleet('device', 'change', '--all', '--disable', '--dry-run'),
    '--data',
    server.report.data,
  ]);
  expect(text.stdout).toBe(`Would disable 12 devices: ${ids.slice(0, 10).join(', ')}, ….\n`);
});

it('devices are deleted one by one, by name, or by a filter', async () => {
  const [first = '', second = '', third = ''] = ids.slice(1);
  expect(await run('device', 'delete', first)).toEqual({ ok: true });
  const twice = await fleetpost([
    ...inFleet('device', 'delete', second, '--tag', 'old'),
    '--data',
    server.report.data,
  ]);
  expect(twice.stderr).toContain('in one way');
  const named = ['--device', second, '--device', third, '--device', first];
  const result = await fleetpost([...inFleet('device', 'delete', ...named), '--data', server.report.data]);
  expect(result).toMatchObject({ status: 1, stdout: 'Deleted 2 devices; 1 not found.\n' });
  expect(await count()).toBe(9);
  expect(await run('device', 'delete', '--tag', 'old', '--yes')).toEqual({ deleted: 1, not_found: 0 });
  expect(await run('device', 'delete', '--all', '--yes')).toEqual({ deleted: 8, not_found: 0 });
  expect(await count()).toBe(0);
});
