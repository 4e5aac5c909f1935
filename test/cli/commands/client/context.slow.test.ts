import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, type TestFleet } from '../../../harness/devices/device.ts';
import { makeCertificate } from '../../../harness/server/certificate.ts';
import { type CommandResult, fleetpostProcess } from '../../../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../../../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
let proxy: Server;
let address: string;
let token: string;
const folder = temporaryFolder();
const ca = join(folder, 'ca.pem');
const file = join(folder, 'config', 'fleetpost', 'contexts.json');

/** A TLS proxy in front of the admin API, with a certificate that only `ca` vouches for. */
function proxyTo(target: string, tls: { cert: string; key: string }): Server {
  return createServer(tls, (incoming, outgoing) => {
    const { method = '', url = '', headers } = incoming;
    const { host } = new URL(target);
    const sent = request(new URL(url, target), { method, headers: { ...headers, host } }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(sent);
  });
}

beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
  ({ token } = JSON.parse(readFileSync(join(server.report.data, 'admin.json'), 'utf8')));
  const tls = await makeCertificate('fleetpost.example', '127.0.0.1');
  writeFileSync(ca, tls.cert);
  proxy = proxyTo(server.report.admin_url, tls);
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  address = `https://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
});
afterAll(() => proxy.close());

function run(args: string[], environment: NodeJS.ProcessEnv = {}): Promise<CommandResult> {
  return fleetpostProcess(args, { XDG_CONFIG_HOME: join(folder, 'config'), ...environment });
}

it('a context leads to its server, with its certificates, token and fleet', async () => {
  expect((await run(['context', 'list'])).stdout).toBe('There are no contexts.\n');
  expect((await run(['context', 'use', 'work'])).stderr).toMatch(/There is no context work\./);
  const add = ['context', 'add', 'work', '--address', address, '--token', token, '--fleet', fleet.fleetId];
  const added = await run([...add, '--ca', ca]);
  expect(added).toMatchObject({ status: 0, stderr: '' });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(file, '..'))).toEqual(['contexts.json']);
  expect((await run(add)).stderr).toBe('fleetpost: There is a context work already. Remove it first.\n');

  expect((await run(['device', 'list', '--context', 'work'])).stdout).toMatch(/no matching devices/);
  expect((await run(['device', 'list', '--context', 'home'])).stderr).toMatch(/no context home/);
  expect((await run(['device', 'list', '--context', 'work', '--data', 'x'])).stderr).toMatch(
    /cannot be used/,
  );
  expect((await run(['context', 'use', 'work'])).stdout).toBe(`Commands now go to ${address}.\n`);

  const device = await run(['device', 'create', '--name', 'Pump', '--json']);
  expect(JSON.parse(device.stdout)).toMatchObject({ fleet_id: fleet.fleetId, name: 'Pump' });
  // Sent while it is answered, and 204 without a body.
  const lines = join(folder, 'devices.ndjson');
  writeFileSync(lines, '{"device_id":"DEVICE0001"}\n');
  expect(await run(['device', 'import', lines, '--out', join(folder, 'results')])).toMatchObject({
    status: 0,
  });
  expect(await run(['device', 'delete', 'DEVICE0001'])).toMatchObject({ status: 0 });
  const missing = await run(['device', 'show', 'DEVICE0001']);
  expect(missing.stderr).toBe(`fleetpost: Fleet ${fleet.fleetId} has no device DEVICE0001.\n`);

  // Flags and environment take precedence over the context.
  const other = await run(['device', 'list', '--fleet', 'GARDEN01']);
  expect(other.stderr).toBe('fleetpost: There is no fleet GARDEN01.\n');
  const named = await run(['device', 'list'], { FLEETPOST_FLEET: 'GARDEN02' });
  expect(named.stderr).toBe('fleetpost: There is no fleet GARDEN02.\n');
  const data = await run(['device', 'list', '--fleet', fleet.fleetId], { FLEETPOST_DATA: folder });
  expect(data.stderr).toMatch(/start the server first/);

  const listed = await run(['context', 'list', '--json']);
  expect(JSON.parse(listed.stdout).items).toEqual([
    { name: 'work', current: true, address, fleet: fleet.fleetId, ca, has_token: true },
  ]);
  expect(listed.stdout).not.toContain(token);
  expect((await run(['context', 'remove', 'work'])).stdout).toMatch(/None is in use now/);
  expect((await run(['device', 'list', '--fleet', fleet.fleetId])).stderr).toMatch(/start the server first/);
});

it('a context without the right certificates is refused, and a damaged file is named', async () => {
  const add = ['context', 'add', 'bare', '--address', address, '--token', token];
  expect((await run([...add, '--ca', '/nowhere'])).stderr).toMatch(/\/nowhere cannot be read/);
  writeFileSync(join(folder, 'empty'), '');
  expect((await run([...add, '--ca', join(folder, 'empty')])).stderr).toMatch(/holds no certificate/);
  expect((await run(['context', 'add', 'a/b', ...add.slice(3)])).stderr).toMatch(/A name is 1 to 64/);
  expect((await run(['context', 'add', 'bare', '--address', 'host:1'])).stderr).toMatch(/It must be a URL/);
  expect(await run(add)).toMatchObject({ status: 0 });
  const list = await run(['fleet', 'list'], { FLEETPOST_CONTEXT: 'bare' });
  expect([list.status, list.stderr]).toEqual([
    1,
    expect.stringMatching(/The certificate of https:.* is not trusted/),
  ]);
  for (const content of ['', '[]', '{"contexts":{"a":{"address":1}}}', '{"contexts":{"a":null}}']) {
    writeFileSync(file, content);
    const damaged = await run(['context', 'list']);
    expect([damaged.status, damaged.stderr]).toEqual([1, expect.stringMatching(/contexts\.json is damaged/)]);
    // A caller that names a server needs no context.
    const data = ['--data', server.report.data, '--fleet', fleet.fleetId];
    expect((await run(['device', 'list', ...data])).status).toBe(0);
  }
});
