import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { fleetpost, fleetpostJson, fleetpostProcess } from '../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;
const folder = temporaryFolder();
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
  device = await fleet.createDevice();
});

const inFleet = (...args: string[]): string[] => [...args, '--fleet', fleet.fleetId];
const ofDevice = (...args: string[]): string[] => [...inFleet(...args), '--device', device.deviceId];
const plain = (args: string[]) => fleetpost([...args, '--data', server.report.data]);

it('a payload comes from a file, byte for byte', async () => {
  const file = join(folder, 'payload.json');
  writeFileSync(file, '{"n": 1.50}\n');
  await fleetpostJson(server, ofDevice('mail', 'send', '--name', 'a', '--payload', `@${file}`));
  const next = await device.next();
  expect(next.text).toBe('{"n": 1.50}');
  await device.settle('ack', String(next.headers.get('x-mail-id')));
  const broadcast = [
    'mail',
    'broadcast',
    '--name',
    'b',
    '--all',
    '--yes',
    '--follow',
    '--payload',
    `@${file}`,
  ];
  expect(await fleetpostJson(server, inFleet(...broadcast))).toMatchObject({ queued: 1 });
  expect((await device.next()).text).toBe('{"n": 1.50}');
  for (const [payload, message] of [
    ['{"seconds":30', /^fleetpost: --payload is not JSON: /],
    ['@/nowhere', /^fleetpost: \/nowhere cannot be read: /],
  ] as const) {
    const result = await plain(ofDevice('mail', 'send', '--name', 'a', '--payload', payload));
    expect(result).toMatchObject({ status: 1, stderr: expect.stringMatching(message) });
  }
});

it('a refusal names the option, the fleet and the device', async () => {
  const results = [
    ['fleet', 'create', '--id', 'GARDEN1'],
    ['device', 'create', '--fleet', fleet.fleetId, '--tag', 'a\u0007'],
    ['device', 'show', 'NODEVICE01', '--fleet', fleet.fleetId],
    ['device', 'list', '--fleet', 'GARDEN01'],
    ['device', 'list', '--fleeet', 'GARDEN01'],
    ['device', 'list'],
    ['mail', 'send', '--fleeet', 'GARDEN01'],
    ['mail', 'list', '--fleet', fleet.fleetId, '--device', 'pump1'],
    ['consumer', 'create', 'c', '--fleet', fleet.fleetId, '--kind', 'datapoints'],
    ['fleet', 'delete', fleet.fleetId, '--yes'],
    ['device', 'delete', '--all', '--confirm', 'Garden'],
    ['device', 'crate'],
    ['version'],
  ].map(async (args) => (await plain(args)).stderr);
  expect(await Promise.all(results)).toEqual([
    "fleetpost: option '--id <id>' argument 'GARDEN1' is invalid. It must be 8 letters or digits.\n",
    'fleetpost: --tag must have no control characters.\n',
    `fleetpost: Fleet ${fleet.fleetId} has no device NODEVICE01.\n`,
    'fleetpost: There is no fleet GARDEN01.\n',
    "fleetpost: unknown option '--fleeet'\n(Did you mean --fleet?)\n",
    "fleetpost: required option '--fleet <id>' not specified; or set FLEETPOST_FLEET\n",
    "fleetpost: unknown option '--fleeet'\n(Did you mean --fleet?)\n",
    "fleetpost: option '--device <id>' argument 'pump1' is invalid. It must be 10 letters or digits.\n",
    expect.stringMatching(/^fleetpost: --kind must be one of datapoint, message, receipt, reply\.\n$/),
    "fleetpost: unknown option '--yes'\n(Did you mean --confirm <name>?)\n",
    "fleetpost: unknown option '--confirm'\n(Did you mean --yes?)\n",
    "fleetpost: unknown command 'crate'\n(Did you mean create?)\n",
    "fleetpost: unknown command 'version'\n",
  ]);
});

it('a limit that there is not is none', async () => {
  const { stdout } = await plain(['fleet', 'create', '--id', 'PLAINTXT', '--mail-requeues-max', '0']);
  expect(stdout).toBe('The fleet PLAINTXT is created; "fleet show PLAINTXT" prints its limits.\n');
  const shown = (await plain(['fleet', 'show', 'PLAINTXT'])).stdout;
  expect(shown).toMatch(/^log_bytes_max +none$/m);
  expect(shown).toMatch(/^requests_per_second_max +none$/m);
  expect(shown).toMatch(/^mail_requeues_max +0$/m);
});

it('times are durations too', async () => {
  const seenLately = async () =>
    (await fleetpostJson(server, inFleet('device', 'list', '--seen-after', '1h'))).items;
  // Last-seen times are written every few seconds (D13).
  await expect.poll(seenLately).toHaveLength(1);
  expect((await fleetpostJson(server, inFleet('device', 'list', '--seen-before', '1h'))).items).toEqual([]);
  const sent = ofDevice('mail', 'send', '--name', 'a', '--deliver-at', '2h', '--ttl-seconds', '1d');
  expect(await fleetpostJson(server, sent)).toMatchObject({ state: 'delayed' });
  const letters = inFleet('dead-letter', 'list', '--since', '7d', '--until', '2020-01-01T00:00:00Z');
  expect((await fleetpostJson(server, letters)).items).toEqual([]);
});

it('exports go to standard output, and replace no file', async () => {
  const devices = await plain(inFleet('device', 'export', '--out', '-'));
  expect(devices.status).toBe(0);
  expect(JSON.parse(devices.stdout)).toMatchObject({ device_id: device.deviceId });
  expect(devices.stderr).toBe('Wrote 1 devices.\n');
  const csv = await plain(inFleet('export', '--kind', 'datapoint', '--format', 'csv', '--out', '-'));
  expect(csv).toMatchObject({
    status: 0,
    stdout: 'record_id,device_id,kind,schema,stored_at,recorded_at,payload\n',
  });
  expect(csv.stderr).toBe('Wrote 0 records.\n');
  const lines = await plain(inFleet('export', '--kind', 'receipt', '--out', '-'));
  const records = lines.stdout.trimEnd().split('\n');
  expect(records.map((line) => JSON.parse(line).kind)).toContain('receipt');
  expect(lines.stderr).toBe(`Wrote ${records.length} records.\n`);
  expect((await plain(inFleet('export', '--format', 'parquet', '--out', '-'))).stderr).toContain(
    'needs a file',
  );
  expect(existsSync('-')).toBe(false);

  const file = join(folder, 'existing');
  writeFileSync(file, 'precious');
  for (const command of [['export'], ['device', 'export'], ['device', 'import', '--count', '1']]) {
    const { status, stderr } = await plain(inFleet(...command, '--out', file));
    expect([status, stderr]).toEqual([1, expect.stringMatching(/exists/)]);
  }
  expect(readFileSync(file, 'utf8')).toBe('precious');
});

it('fleet and server come from the environment, unless they are named', async () => {
  const { admin_url: admin, data } = server.report;
  const { token } = JSON.parse(readFileSync(join(data, 'admin.json'), 'utf8'));
  const environment = { FLEETPOST_FLEET: fleet.fleetId, FLEETPOST_ADMIN: admin, FLEETPOST_TOKEN: token };
  const found = await fleetpostProcess(['device', 'list', '--json'], environment);
  expect(JSON.parse(found.stdout).items).toHaveLength(1);
  const other = await fleetpostProcess(['device', 'list', '--fleet', 'GARDEN01'], environment);
  expect(other.stderr).toBe('fleetpost: There is no fleet GARDEN01.\n');
  const folderFirst = await fleetpostProcess(['device', 'list', '--data', folder], environment);
  expect(folderFirst.stderr).toContain('start the server first');
  // The same variable is the address of the server: then it is not for commands.
  const address = await fleetpostProcess(['device', 'list'], {
    ...environment,
    FLEETPOST_ADMIN: '127.0.0.1:1',
    FLEETPOST_DATA: data,
  });
  expect(address.status).toBe(0);
  const config = await fleetpostProcess(['config', '--json'], environment);
  expect(config.status).toBe(0);
});

it('a broadcast that as many devices refuse as take fails with --follow', async () => {
  const send = (...ids: string[]) => {
    const file = join(folder, 'ids.txt');
    writeFileSync(file, ids.join('\n'));
    return plain(inFleet('mail', 'broadcast', '--name', 'c', '--devices', file, '--yes', '--follow'));
  };
  expect(await send(device.deviceId)).toMatchObject({ status: 0, stderr: '' });
  const failed = await send(device.deviceId, 'NOBODY0001');
  expect(failed.status).toBe(1);
  expect(failed.stdout).toMatch(/is done; mails queued: 1, refused: 1 /);
  expect(failed.stderr).toMatch(/^fleetpost: 1 of 2 devices were refused the mail: broadcast refusals /);
  for (const _ of [1, 2]) await device.settle('ack', String((await device.next()).headers.get('x-mail-id')));
});
