import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { TestDevice } from '../harness/devices/device.ts';
import { fleetpost, fleetpostJson } from '../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../harness/server/server.ts';

let server: TestServer;
const folder = temporaryFolder();
beforeAll(async () => {
  server = await TestServer.shared();
});

const run = (...args: string[]) => fleetpostJson(server, args);

it('a fleet, a device, a schema and mail are made by commands, and the device works with them', async () => {
  expect(await run('fleet', 'create', '--id', 'CMDFLEET', '--name', 'By command')).toMatchObject({
    fleet_id: 'CMDFLEET',
    name: 'By command',
  });
  const fleets = await run('fleet', 'list');
  expect(fleets.items.map((fleet: { fleet_id: string }) => fleet.fleet_id)).toContain('CMDFLEET');
  expect(fleets.next).toBeNull();

  const made = await run(
    'device',
    'create',
    '--fleet',
    'CMDFLEET',
    '--name',
    'Pump',
    '--tag',
    'a',
    '--tag',
    'b',
  );
  expect(made).toMatchObject({ fleet_id: 'CMDFLEET', tags: ['a', 'b'] });
  const device = new TestDevice(server, 'CMDFLEET', made.device_id, made.device_secret);

  const schemaFile = join(folder, 'flow.json');
  const schema = '{ "type": "object", "required": ["litres"] }\n';
  writeFileSync(schemaFile, schema);
  await run('schema', 'put', 'datapoint', 'flow', schemaFile, '--fleet', 'CMDFLEET');
  expect((await run('schema', 'list', '--fleet', 'CMDFLEET')).items).toEqual([
    { kind: 'datapoint', name: 'flow', disabled: null },
  ]);
  const shown = await fleetpost([
    'schema',
    'show',
    'datapoint',
    'flow',
    '--fleet',
    'CMDFLEET',
    '--data',
    server.report.data,
  ]);
  expect(shown.stdout).toBe(schema);
  expect((await device.request('POST', '/v1/datapoint/flow', { litres: 2 })).status).toBe(201);
  expect((await device.request('POST', '/v1/datapoint/flow', { meters: 2 })).status).toBe(400);

  const payload = '{"n": 12345678901234567890}';
  const args = ['--fleet', 'CMDFLEET', '--device', made.device_id];
  const sent = await run('mail', 'send', ...args, '--name', 'go', '--payload', payload);
  expect(sent).toMatchObject({ mailbox_size: 1 });
  expect((await device.next()).text).toBe(payload);
  const listed = await fleetpost(['mail', 'list', ...args, '--data', server.report.data, '--json']);
  expect(listed.stdout).toContain(`"payload":${payload}`);
  expect(JSON.parse(listed.stdout).items[0]).toMatchObject({ mail_id: sent.mail_id, name: 'go' });

  await run('schema', 'delete', 'datapoint', 'flow', '--fleet', 'CMDFLEET');
  expect((await device.request('POST', '/v1/datapoint/flow', { litres: 2 })).status).toBe(404);
});

it('a limit of a fleet is set, and goes back to the default', async () => {
  const made = ['--mailbox-mails-max', '5', '--mail-requeues-max', 'default'];
  await run('fleet', 'create', '--id', 'CMDLIMIT', ...made);
  const set = ['fleet', 'set', 'CMDLIMIT'];
  const limits = { mailbox_mails_max: 5, mail_ttl_seconds: 60, mail_requeues_max: 0, active_seconds: 9 };
  const given = ['--mail-ttl-seconds', '60', '--mail-requeues-max', '0', '--active-seconds', '9'];
  expect(await run(...set, ...given)).toMatchObject(limits);
  expect(await run(...set, '--mailbox-mails-max', 'default')).toMatchObject({
    ...limits,
    mailbox_mails_max: 1000,
  });
  const back = ['--mail-ttl-seconds', '--mail-requeues-max', '--active-seconds'];
  expect(await run(...set, ...back.flatMap((option) => [option, 'default']))).toMatchObject({
    mail_ttl_seconds: 604_800,
    mail_requeues_max: null,
    active_seconds: 300,
  });
});

it('every property of a fleet is set and shown, and goes back to the default', async () => {
  await run('fleet', 'create', '--id', 'CMDWHOLE', '--log-retention-seconds', '3600');
  const before = await run('fleet', 'show', '--fleet', 'CMDWHOLE');
  expect(before).toMatchObject({ fleet_id: 'CMDWHOLE', log_retention_seconds: 3_600 });
  const limits = {
    mailbox_mails_max: 5,
    mail_bytes_max: 100_000,
    mail_ttl_seconds: 60,
    mail_requeues_max: 3,
    requests_per_second_max: 7,
    device_requests_per_second_max: 0,
    device_bytes_per_second_max: 9_000,
    active_seconds: 9,
    log_retention_seconds: 86_400,
    log_bytes_max: 1_000_000,
  };
  const { fleet_id, created_at, deleting_since, name, own, ...shown } = before;
  expect(Object.keys(shown).sort()).toEqual(Object.keys(limits).sort());
  expect(own).toEqual(['log_retention_seconds']);
  const flags = (value: (limit: number) => string) =>
    Object.entries(limits).flatMap(([key, limit]) => [`--${key.replaceAll('_', '-')}`, value(limit)]);
  await run('fleet', 'set', 'CMDWHOLE', '--name', 'Whole', ...flags(String));
  const whole = { fleet_id, created_at, deleting_since, name: 'Whole', ...limits, own: Object.keys(limits) };
  expect(await run('fleet', 'show', 'CMDWHOLE')).toEqual(whole);
  await run('fleet', 'set', '--fleet', 'CMDWHOLE', '--name', '', ...flags(() => 'default'));
  const after = await run('fleet', 'show', 'CMDWHOLE');
  expect(after).toMatchObject({
    name: '',
    log_bytes_max: null,
    mail_bytes_max: before.mail_bytes_max,
    mail_requeues_max: null,
    own: [],
  });
  expect(after.log_retention_seconds).toBeGreaterThan(86_400);
});

it('the name and the tags of a device are set', async () => {
  await run('fleet', 'create', '--id', 'CMDDEVST');
  await run('device', 'create', '--fleet', 'CMDDEVST', '--id', 'DEVICE0001', '--name', 'One', '--tag', 'a');
  const set = ['device', 'set', 'DEVICE0001', '--fleet', 'CMDDEVST'];
  expect(await run(...set, '--name', 'Two')).toMatchObject({ name: 'Two', tags: ['a'], enabled: true });
  expect(await run(...set, '--tag', 'b', '--tag', 'c')).toMatchObject({ name: 'Two', tags: ['b', 'c'] });
  expect(await run(...set, '--clear-tags')).toMatchObject({ name: 'Two', tags: [] });
  const nothing = await fleetpost([...set, '--data', server.report.data]);
  expect(nothing).toMatchObject({ status: 1, stderr: expect.stringContaining('Nothing to change') });
});

it('a device is disabled, enabled, re-keyed and deleted by commands', async () => {
  await run('fleet', 'create', '--id', 'CMDSTATE');
  const made = await run('device', 'create', '--fleet', 'CMDSTATE', '--id', 'DEVICE0001');
  const device = new TestDevice(server, 'CMDSTATE', made.device_id, made.device_secret);
  const args = ['DEVICE0001', '--fleet', 'CMDSTATE'];
  await run('device', 'disable', ...args);
  expect((await device.heartbeat()).json.detail).toBe('device_disabled');
  await run('device', 'enable', ...args);
  expect((await device.heartbeat()).status).toBe(201);
  const rotated = await run('device', 'rotate-secret', ...args);
  expect((await device.heartbeat()).json.detail).toBe('device_secret_incorrect');
  const renewed = new TestDevice(server, 'CMDSTATE', made.device_id, rotated.device_secret);
  expect((await renewed.heartbeat()).status).toBe(201);
  expect(await run('device', 'show', ...args)).toMatchObject({
    device_id: 'DEVICE0001',
    enabled: true,
    mailbox_size: 0,
  });
  await run('device', 'delete', ...args);
  expect((await renewed.heartbeat()).json.detail).toBe('device_not_found');
});

it('device import writes as many devices as asked for, each of which the server knows', async () => {
  await run('fleet', 'create', '--id', 'CMDIMPRT');
  const out = join(folder, `devices-${server.port}.csv`);
  await run('device', 'import', '--fleet', 'CMDIMPRT', '--count', '5000', '--out', out);
  expect(statSync(out).mode & 0o777).toBe(0o600);
  const [header, ...lines] = readFileSync(out, 'utf8').trimEnd().split('\n');
  expect(header).toBe('fleet_id,device_id,device_secret');
  expect(lines).toHaveLength(5000);
  for (const line of [lines[0], lines[2500], lines[4999]]) {
    const [fleetId = '', deviceId = '', secret = ''] = line?.split(',') ?? [];
    expect((await new TestDevice(server, fleetId, deviceId, secret).heartbeat()).status).toBe(201);
  }
  const ids = lines.map((line) => line.split(',')[1]).sort();
  const listed = await run('device', 'list', '--fleet', 'CMDIMPRT', '--limit', '10000');
  expect(listed.items.map((device: { device_id: string }) => device.device_id)).toEqual(ids);
  const { next } = await run('device', 'list', '--fleet', 'CMDIMPRT', '--limit', '100');
  const page = await run('device', 'list', '--fleet', 'CMDIMPRT', '--limit', '7', '--after', next);
  expect(page.items.map((device: { device_id: string }) => device.device_id)).toEqual(ids.slice(100, 107));
  expect(page.next).not.toBe(next);
});

it.each([
  [
    ['fleet', 'create', '--id', 'short'],
    /'--id <id>' argument 'short' is invalid. It must be 8 letters or digits/,
  ],
  [['device', 'show', 'DEVICE0001', '--fleet', 'NOFLEET1'], /There is no fleet NOFLEET1\.$/m],
  [
    ['mail', 'send', '--fleet', 'NOFLEET1', '--device', 'DEVICE0001', '--name', 'a'],
    /There is no fleet NOFLEET1\.$/m,
  ],
  [['schema', 'put', 'datapoint', 'a', '/nowhere', '--fleet', 'NOFLEET1'], /cannot be read/],
])('%j ends with status 1 and one sentence on stderr', async (args, message) => {
  const { status, stdout, stderr } = await fleetpost([...args, '--data', server.report.data, '--json']);
  expect(status).toBe(1);
  expect(stdout).toBe('');
  expect(stderr).toMatch(message);
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
});

it('commands find no server: they say what to do', async () => {
  const missing = await fleetpost(['fleet', 'list', '--data', join(folder, 'nowhere')]);
  expect(missing).toMatchObject({ status: 1, stdout: '' });
  expect(missing.stderr).toMatch(/start the server first/);
  const gone = await fleetpost(['fleet', 'list', '--admin', 'http://127.0.0.1:44321', '--token', 'x']);
  expect(gone.stderr).toMatch(/Is it running/);
  const wrong = await fleetpost(['fleet', 'list', '--admin', server.report.admin_url, '--token', 'x']);
  expect(wrong.stderr).toMatch(/token/);
});

it('every command has --help', async () => {
  const top = await fleetpost(['--help']);
  expect(top.stdout).toMatch(/serve[\s\S]*config/);
  for (const group of ['fleet', 'device', 'schema', 'mail']) {
    const { stdout, status } = await fleetpost([group, '--help']);
    expect(status).toBe(0);
    expect(stdout).toContain('Commands:');
  }
  expect((await fleetpost(['serve', '--help'])).stdout).toContain('--shards');
  const create = (await fleetpost(['token', 'create', '--help'])).stdout.replace(/\s+/g, ' ');
  expect(create).toContain('--name <text> who or what uses it (required) --scopes');
  expect(create).toContain('--fleet <id> restrict it to this fleet --expires');
  const list = (await fleetpost(['device', 'list', '--help'])).stdout.replace(/\s+/g, ' ');
  expect(list).toContain('--fleet <id> the fleet (required, or set FLEETPOST_FLEET)');
  // The help of a command with an unknown option is still its help.
  expect((await fleetpost(['device', 'list', '--fleeet', 'a', '--help'])).stdout).toContain('Options:');
});
