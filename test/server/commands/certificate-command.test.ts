import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { connect, createServer } from 'node:tls';
import { expect, it } from 'vitest';
import { createServerCertificate } from '../../../src/server/certificates/authority.ts';
import { fleetpostProcess } from '../../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';

const created = (folder: string, ...args: string[]) =>
  fleetpostProcess(['certificate', 'create', '--out', folder, ...args]);

/** Verdict of OpenSSL on a server's certificate for a host, trusting this authority alone. */
function verdictOf(pair: { cert: string; key: string }, ca: string, servername: string): Promise<string> {
  return new Promise((resolve) => {
    const server = createServer(pair, (socket) => socket.end());
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      const done = (verdict: string) => {
        socket.destroy();
        server.close(() => resolve(verdict));
      };
      const socket = connect({ port, host: '127.0.0.1', ca, servername }, () => done('trusted'));
      socket.on('error', (error: NodeJS.ErrnoException) => done(error.message));
    });
  });
}

it('a device that trusts the authority alone reaches the server by each of its hosts', async () => {
  const folder = join(temporaryFolder(), 'certificates');
  const { status, stdout } = await created(
    folder,
    '--host',
    'localhost',
    '--host',
    '127.0.0.1',
    '--host',
    '::1',
  );
  expect([status, stdout]).toEqual([0, expect.stringContaining('valid for 365 days')]);
  await using server = await TestServer.start({
    listen: '0.0.0.0:0',
    tlsCertFile: join(folder, 'server.pem'),
    tlsKeyFile: join(folder, 'server-key.pem'),
  });
  expect(server.report.url).toMatch(/^https:\/\/localhost:\d+$/);
  for (const host of ['localhost', '127.0.0.1']) {
    const ca = readFileSync(join(folder, 'ca.pem'));
    const [answer] = await once(get({ host, port: server.port, ca, agent: false }), 'response');
    expect(answer.statusCode).toBe(200);
  }
});

it('a certificate of addresses alone is one that its authority vouches for', async () => {
  const folder = join(temporaryFolder(), 'certificates');
  await created(folder, '--host', '127.0.0.1');
  const read = (name: string) => readFileSync(join(folder, name), 'utf8');
  const pair = { cert: read('server.pem'), key: read('server-key.pem') };
  expect(await verdictOf(pair, read('ca.pem'), '')).toBe('trusted');
});

it('an authority vouches for its own hosts and for nobody else', async () => {
  const folder = join(temporaryFolder(), 'certificates');
  await created(folder, '--host', 'fleet.lan', '--host', '192.168.1.10');
  const read = (name: string) => readFileSync(join(folder, name), 'utf8');
  const authority = { certificate: read('ca.pem'), key: read('ca-key.pem') };
  const signed = async (host: string) => {
    const { certificate: cert, key } = await createServerCertificate(authority, { hosts: [host], days: 30 });
    return verdictOf({ cert, key }, authority.certificate, /^[\d.]+$/.test(host) ? '' : host);
  };
  expect(await signed('fleet.lan')).toBe('trusted');
  expect(await signed('bank.example')).toBe('permitted subtree violation');
  expect(await signed('10.0.0.1')).toBe('permitted subtree violation');
});

it('keys are readable by their owner alone; without that of the authority a renewal says what to do', async () => {
  const folder = join(temporaryFolder(), 'certificates');
  await created(folder, '--host', 'fleet.lan', '--forget-ca-key');
  expect(existsSync(join(folder, 'ca-key.pem'))).toBe(false);
  expect(statSync(join(folder, 'server-key.pem')).mode & 0o777).toBe(0o600);
  const { status, stderr } = await fleetpostProcess(['certificate', 'renew', folder]);
  expect([status, stderr]).toEqual([
    1,
    expect.stringMatching(/ca-key\.pem, is not there: .*bring its ca\.pem to all devices/),
  ]);
});

it('a renewed certificate has the same hosts, another key, and the same authority', async () => {
  const folder = join(temporaryFolder(), 'certificates');
  await created(folder, '--host', '*.fleet.lan', '--host', 'fe80::1', '--days', '30');
  expect(statSync(join(folder, 'ca-key.pem')).mode & 0o777).toBe(0o600);
  const show = async () =>
    JSON.parse(
      (await fleetpostProcess(['certificate', 'show', join(folder, 'server.pem'), '--json'])).stdout,
    );
  const before = await show();
  const { status } = await fleetpostProcess(['certificate', 'renew', folder, '--days', '60']);
  const after = await show();
  expect(status).toBe(0);
  expect(after).toMatchObject({ hosts: ['*.fleet.lan', before.hosts[1]], issuer: before.issuer });
  expect(after.fingerprint_sha256).not.toBe(before.fingerprint_sha256);
  expect(Date.parse(after.not_after) - Date.parse(before.not_after)).toBeGreaterThan(29 * 86_400_000);
});

it.each([
  [['--host', 'https://fleet.lan'], /must be a host name or an IP address/],
  [['--host', 'fleet.lan:8443'], /must be a host name or an IP address/],
  [[], /required option '--host <name>'/],
  [['--host', 'fleet.lan', '--days', '0'], /--days must be a whole number/],
])('%j is refused, and leaves nothing', async (args, reason) => {
  const folder = join(temporaryFolder(), 'certificates');
  const { status, stderr } = await created(folder, ...args);
  expect([status, stderr]).toEqual([1, expect.stringMatching(reason)]);
  expect(existsSync(folder)).toBe(false);
});

it('a folder that is there already is left alone', async () => {
  const folder = temporaryFolder();
  const { status, stderr } = await created(folder, '--host', 'fleet.lan');
  expect([status, stderr]).toEqual([1, expect.stringContaining('exists. Name a new folder')]);
});
