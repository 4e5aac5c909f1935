/** Decisions D26 and D27: the admin API beyond loopback. */

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type EphemeralKeyInfo, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../../src/device/simulator/run/free-port.ts';
import {
  createAuthority,
  createServerCertificate,
  type KeyedCertificate,
} from '../../../src/server/certificates/authority.ts';
import { floodAddress, floodHandshakes } from '../../device-api/hostile/vanishing.ts';
import { RawConnection, requestText } from '../../harness/devices/raw.ts';
import { ownCertificate, TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { openFiles, pause, until } from '../../harness/server/vitals.ts';

/** The files are looked at every 5 s. */
const renewalMs = 20_000;
const bodyTimeoutSeconds = 1;
const json = { 'Content-Type': 'application/json' };
const run = promisify(execFile);

const addresses = Object.values(networkInterfaces()).flatMap((all = []) => all);
/** An address of this machine that others could reach; where it has none, one of loopback. */
const own = addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? '127.0.0.1';
const folder = temporaryFolder();
const certFile = join(folder, 'admin.pem');
const keyFile = join(folder, 'admin-key.pem');
const caFile = join(folder, 'ca.pem');
const hosts = ['fleet.example', 'localhost', own, '127.0.0.1'];

let authority: KeyedCertificate;
let server: TestServer;
let port: number;
let bearer: { Authorization: string };

/** Writes a certificate of the authority that names this host first. */
async function certify(name: string): Promise<void> {
  const terms = { hosts: [name, ...hosts.filter((host) => host !== name)], days: 1 };
  const { certificate, key } = await createServerCertificate(authority, terms);
  writeFileSync(keyFile, key);
  writeFileSync(certFile, certificate);
}

beforeAll(async () => {
  authority = await createAuthority({ hosts, days: 1 });
  writeFileSync(caFile, authority.certificate);
  await certify('fleet.example');
  server = await TestServer.start({
    admin: '0.0.0.0:0',
    adminTlsCertFile: certFile,
    adminTlsKeyFile: keyFile,
    adminHosts: 'proxy.example',
    bodyTimeoutSeconds,
  });
  port = Number(new URL(server.report.admin_url).port);
  bearer = { Authorization: `Bearer ${server.token}` };
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** A connection over TLS that trusts the authority alone. */
async function open(options: ConnectionOptions & { port?: number } = {}): Promise<RawConnection> {
  const { certificate: ca } = authority;
  const socket: TLSSocket = connect({ host: own, port, ca, ...options });
  await once(socket, 'secureConnect');
  return new RawConnection(socket);
}

async function ask(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const connection = await open();
  connection.write(requestText(method, path, { Host: `${own}:${port}`, ...headers }));
  const answer = await connection.answer();
  connection.destroy();
  return answer;
}

/** Runs `fleetpost fleet list`. */
function fleetList(...options: string[]) {
  const main = new URL('../../../dist/main.js', import.meta.url).pathname;
  return run(process.execPath, [main, 'fleet', 'list', '--json', ...options]);
}

/** First host of the certificate that new connections are shown. */
async function nameShown(): Promise<string> {
  const { socket } = await open();
  const name = String(socket.getPeerCertificate().subject.CN);
  socket.destroy();
  return name;
}

describe('D26: HTTPS on addresses other than loopback', () => {
  it('D26: the admin API is served in HTTPS with a certificate of its own, in TLS 1.2 and 1.3', async () => {
    expect(server.report.admin_url).toBe(`https://fleet.example:${port}`);
    expect((await ask('/readyz')).status).toBe(200);
    expect((await ask('/admin/v1/fleets', bearer)).status).toBe(200);
    expect((await ask('/admin/v1/fleets')).status).toBe(401);
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const { socket } = await open({ minVersion: version, maxVersion: version });
      expect(socket.getProtocol()).toBe(version);
      socket.destroy();
    }
    await expect(open({ minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' })).rejects.toThrow();
  });

  it('D26: a handshake takes part in no key exchange that takes the server long, however it is offered', async () => {
    for (const groups of ['X25519:P-256', 'P-256', 'P-521:P-256', 'ffdhe8192:X25519:P-256'])
      for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
        const { socket } = await open({ ecdhCurve: groups, maxVersion });
        const { name } = socket.getEphemeralKeyInfo() as EphemeralKeyInfo;
        expect(['X25519', 'prime256v1'], groups).toContain(name);
        socket.destroy();
      }
    for (const group of ['P-384', 'P-521', 'X448', 'ffdhe2048', 'ffdhe8192'])
      await expect(open({ ecdhCurve: group }), group).rejects.toThrow();
    await expect(open({ ciphers: 'DHE', maxVersion: 'TLSv1.2' })).rejects.toThrow();
  });

  it('D26: an address that keeps the main thread busy with handshakes gets few more, every other one is served', async () => {
    await using other = await TestServer.start({
      admin: '127.0.0.1:0',
      adminTlsCertFile: certFile,
      adminTlsKeyFile: keyFile,
      adminConnectionsPerSecondPerAddressMax: 10,
    });
    const otherPort = Number(new URL(other.report.admin_url).port);
    const ended = new AbortController();
    const flooding = floodHandshakes(otherPort, 'P-256', ended.signal);
    await until(() => other.stderr.includes('address over its rate'));
    const connection = await open({ host: '127.0.0.1', port: otherPort });
    connection.write(requestText('GET', '/readyz', {}));
    expect((await connection.answer()).status).toBe(200);
    connection.destroy();
    ended.abort();
    await flooding;
    const lines = other.stderr.trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ address: floodAddress }]);
  });

  it('D26: plain HTTP gets no answer on that address', async () => {
    const plain = await RawConnection.openPlain(`http://${own}:${port}`);
    plain.write(requestText('GET', '/admin/v1/fleets', bearer));
    await plain.closed();
    expect(plain.text).not.toContain('fleet_id');
    expect(plain.text).not.toMatch(/^HTTP\/1.1 2/);
    expect((await ask('/readyz')).status).toBe(200);
  });

  it('D26: without one of its own it takes the certificate that is configured for the device API', async () => {
    await using other = await TestServer.start({
      admin: '0.0.0.0:0',
      tlsCertFile: certFile,
      tlsKeyFile: keyFile,
    });
    const { protocol, port: otherPort } = new URL(other.report.admin_url);
    expect(protocol).toBe('https:');
    const connection = await open({ port: Number(otherPort) });
    connection.write(requestText('GET', '/admin/v1/fleets', { Authorization: `Bearer ${other.token}` }));
    expect((await connection.answer()).status).toBe(200);
    connection.destroy();
  });

  it('D26: plain HTTP elsewhere than on loopback is refused at start with a sentence, as is half a certificate', async () => {
    await expect(TestServer.start({ ...ownCertificate, admin: '0.0.0.0:0' })).rejects.toThrow(
      /speaks plain HTTP and cannot listen on 0.0.0.0 without a certificate: set adminTlsCertFile/,
    );
    await expect(TestServer.start({ admin: '0.0.0.0:0', adminTlsCertFile: certFile })).rejects.toThrow(
      /only one of adminTlsCertFile and adminTlsKeyFile is set/,
    );
    await expect(
      TestServer.start({ adminTlsCertFile: certFile, adminTlsKeyFile: join(folder, 'absent') }),
    ).rejects.toThrow(/The private key .*absent cannot be used/);
  });

  it('D26: on loopback it is plain HTTP by default, and HTTPS with a certificate of its own', async () => {
    await using plain = await TestServer.start();
    expect(plain.report.admin_url).toMatch(/^http:\/\/127\.0\.0\.1:/);
    await using secure = await TestServer.start({ adminTlsCertFile: certFile, adminTlsKeyFile: keyFile });
    expect(secure.report.admin_url).toMatch(/^https:\/\/127\.0\.0\.1:/);
    const connection = await open({ host: '127.0.0.1', port: Number(new URL(secure.report.admin_url).port) });
    connection.write(requestText('GET', '/readyz', {}));
    expect((await connection.answer()).status).toBe(200);
    connection.destroy();
    const { stdout } = await fleetList('--data', secure.report.data, '--admin-ca', caFile);
    expect(JSON.parse(stdout)).toHaveProperty('items');
  });

  it('D26: bodies have the same times as in plain HTTP, and a handshake that never comes holds up no stop', async () => {
    const refused = await open();
    refused.write(requestText('POST', '/admin/v1/fleets', { ...json, 'Content-Length': '60000' }, '{'));
    expect((await refused.answer()).status).toBe(401);
    refused.write('x'.repeat(10_000));
    await refused.closed();
    const made = await createFleetRemotely();
    const slow = await open();
    const type = { 'Content-Type': 'application/x-ndjson', 'Transfer-Encoding': 'chunked' };
    slow.write(requestText('POST', `/admin/v1/fleets/${made}/devices:import`, { ...bearer, ...type }));
    for (let line = 0; line < 5; line += 1) {
      await pause(bodyTimeoutSeconds * 500);
      const text = `${JSON.stringify({ device_id: `SLOW00000${line}` })}\n`;
      slow.write(`${text.length.toString(16)}\r\n${text}\r\n`);
    }
    await until(() => slow.text.split('"result":"created"').length - 1 === 5);
    slow.destroy();
    await using other = await TestServer.start({
      admin: '0.0.0.0:0',
      adminTlsCertFile: certFile,
      adminTlsKeyFile: keyFile,
    });
    const before = openFiles(other);
    const silent = await RawConnection.openPlain(`http://${own}:${new URL(other.report.admin_url).port}`);
    await until(() => openFiles(other) > before);
    const startMs = Date.now();
    await other.stop();
    expect(Date.now() - startMs).toBeLessThan(8_000);
    silent.destroy();
  });

  it('D26: the commands reach it with --admin-ca, and without it say what is missing', async () => {
    const place = ['--admin', `https://${own}:${port}`, '--token', server.token];
    const fleets = (...options: string[]) => fleetList(...place, ...options);
    const { stdout } = await fleets('--admin-ca', caFile);
    expect(JSON.parse(stdout)).toHaveProperty('items');
    await expect(fleets()).rejects.toMatchObject({
      stderr: expect.stringMatching(/is not trusted .*: name its authority with --admin-ca FILE/),
    });
    await expect(fleets('--admin-ca', join(folder, 'absent'))).rejects.toMatchObject({
      stderr: expect.stringContaining('The certificates to trust cannot be read'),
    });
  });

  it('D26: a new certificate is taken up without a restart, and connections live on', async () => {
    const kept = await open();
    kept.write(requestText('GET', '/healthz', {}));
    expect((await kept.answer()).status).toBe(200);
    expect(await nameShown()).toBe('fleet.example');
    writeFileSync(certFile, readFileSync(certFile, 'utf8').slice(0, 200));
    await until(() => server.stderr.includes('certificate renewal failed'), renewalMs);
    expect(server.stderr).toContain('"listener":"admin API"');
    expect(await nameShown()).toBe('fleet.example');
    await certify('localhost');
    await until(async () => (await nameShown()) === 'localhost', renewalMs);
    kept.write(requestText('GET', '/healthz', {}));
    expect((await kept.answer()).status).toBe(200);
    kept.destroy();
  });
});

describe('D26: the certificate of the device API', () => {
  it('D26: SIGHUP has the admin API take another one at once, and is refused where it would leave none', async () => {
    const file = join(folder, 'fleetpost.json');
    const put = (config: object): void => writeFileSync(file, JSON.stringify(config));
    put({ tlsCertFile: certFile, tlsKeyFile: keyFile });
    await using other = await TestServer.start({ admin: '0.0.0.0:0' }, undefined, {
      flags: ['--config', file],
    });
    const shown = async (): Promise<string> => {
      const { socket } = await open({ port: Number(new URL(other.report.admin_url).port) });
      const name = String(socket.getPeerCertificate().subject.CN);
      socket.destroy();
      return name;
    };
    put({});
    other.process.kill('SIGHUP');
    await until(() => other.stderr.includes('configuration reload failed; nothing changed'));
    expect(other.stderr).toContain('cannot listen on 0.0.0.0 without a certificate');
    const next = { tlsCertFile: join(folder, 'next.pem'), tlsKeyFile: join(folder, 'next-key.pem') };
    const { certificate, key } = await createServerCertificate(authority, {
      hosts: ['localhost', own],
      days: 1,
    });
    writeFileSync(next.tlsKeyFile, key);
    writeFileSync(next.tlsCertFile, certificate);
    put(next);
    other.process.kill('SIGHUP');
    await until(async () => (await shown()) === 'localhost', 4_000);
  });
});

describe('D26: the probe', () => {
  it('D26: health and metrics have an address of their own, also without TLS, and nothing else is there', async () => {
    const probePort = await freePort();
    await using probed = await TestServer.start({
      admin: '0.0.0.0:0',
      adminTlsCertFile: certFile,
      adminTlsKeyFile: keyFile,
      probe: `0.0.0.0:${probePort}`,
    });
    const headers = { Authorization: `Bearer ${probed.token}` };
    const statusOf = async (path: string): Promise<number> =>
      (await fetch(`http://${own}:${probePort}${path}`, { headers })).status;
    for (const path of ['/healthz', '/readyz', '/metrics']) expect(await statusOf(path), path).toBe(200);
    for (const path of ['/', '/openapi.json', '/admin/v1/fleets', '/admin/v1/top'])
      expect(await statusOf(path), path).toBe(404);
  });
});

describe('D27: whose page, and under which name, also in HTTPS', () => {
  const routes = ['/healthz', '/readyz', '/metrics', '/openapi.json', '/nowhere', '/admin/v1/fleets'];

  it('D27: every route refuses a Host that is no loopback name, no address of the listener, not in adminHosts and not in its certificate', async () => {
    for (const host of ['localhost', '127.0.0.1', '[::1]', own, 'proxy.example', 'PROXY.example.'])
      for (const name of [host, `${host}:${port}`])
        expect((await ask('/readyz', { Host: name })).status, name).toBe(200);
    for (const path of routes) {
      for (const host of ['evil.example', '0.0.0.0', '203.0.113.9', 'sub.fleet.example']) {
        const { status, body } = await ask(path, { ...bearer, Host: host });
        expect([status, JSON.parse(body).error], `${path} as ${host}`).toEqual([403, 'host_refused']);
      }
    }
  });

  it('D27: names in the certificate of the listener are hosts that it answers to, but none below a wildcard, and a renewal changes them', async () => {
    const [nextCert, nextKey] = [join(folder, 'named.pem'), join(folder, 'named-key.pem')];
    const certifyFor = async (...names: string[]): Promise<void> => {
      const certificate = await createServerCertificate(authority, { hosts: names, days: 1 });
      writeFileSync(nextKey, certificate.key);
      writeFileSync(nextCert, certificate.certificate);
    };
    await certifyFor('fleet.example', own, '*.fleet.example');
    await using named = await TestServer.start({
      admin: '0.0.0.0:0',
      adminTlsCertFile: nextCert,
      adminTlsKeyFile: nextKey,
    });
    const namedPort = Number(new URL(named.report.admin_url).port);
    const statusFor = async (host: string): Promise<number> => {
      const connection = await open({ port: namedPort });
      connection.write(
        requestText('GET', '/admin/v1/fleets', { Authorization: `Bearer ${named.token}`, Host: host }),
      );
      const { status } = await connection.answer();
      connection.destroy();
      return status;
    };
    const adminUrl = (): string =>
      JSON.parse(readFileSync(join(named.report.data, 'admin.json'), 'utf8')).url;
    expect(adminUrl()).toBe(`https://fleet.example:${namedPort}`);
    const hosts = [
      'fleet.example',
      'FLEET.example.',
      `fleet.example:${namedPort}`,
      'a.fleet.example',
      'next.example',
    ];
    expect(await Promise.all(hosts.map(statusFor))).toEqual([200, 200, 200, 403, 403]);
    await certifyFor('sub.fleet.example', own);
    named.process.kill('SIGHUP');
    await until(async () => (await statusFor('sub.fleet.example')) === 200, renewalMs);
    expect(await statusFor('fleet.example')).toBe(403);
    await until(() => adminUrl() === `https://sub.fleet.example:${namedPort}`);
  });

  it('D27: every route refuses a Sec-Fetch-Site of cross-site or same-site', async () => {
    for (const path of routes) {
      for (const site of ['cross-site', 'same-site']) {
        const { status, body } = await ask(path, { ...bearer, 'Sec-Fetch-Site': site });
        expect([status, JSON.parse(body).error], `${path} from ${site}`).toEqual([403, 'host_refused']);
      }
    }
    for (const site of ['same-origin', 'none'])
      expect((await ask('/admin/v1/fleets', { ...bearer, 'Sec-Fetch-Site': site })).status, site).toBe(200);
  });

  it('D27: no CORS header is sent, to whomever', async () => {
    const origin = { ...bearer, Origin: 'https://evil.example' };
    const preflight = { 'Access-Control-Request-Method': 'POST' };
    for (const path of routes) {
      for (const answer of [await ask(path, origin), await ask(path, { ...origin, ...preflight }, 'OPTIONS')])
        expect(answer.headers.filter(([name]) => name.startsWith('access-control'))).toEqual([]);
    }
  });

  it('D27: on a dual-stack listener the IPv4 address is an address of the listener', async () => {
    await using dual = await TestServer.start({
      admin: '[::]:0',
      adminTlsCertFile: certFile,
      adminTlsKeyFile: keyFile,
    });
    const dualPort = Number(new URL(dual.report.admin_url).port);
    for (const [host, status] of [
      [own, 200],
      ['elsewhere.example', 403],
    ] as const) {
      const connection = await open({ port: dualPort });
      connection.write(requestText('GET', '/readyz', { Host: host }));
      expect((await connection.answer()).status, host).toBe(status);
      connection.destroy();
    }
  });
});

/** Creates a fleet over HTTPS; returns its id. */
async function createFleetRemotely(): Promise<string> {
  const connection = await open();
  const body = '{"name":"remote"}';
  const framing = { ...bearer, ...json, 'Content-Length': String(body.length) };
  connection.write(requestText('POST', '/admin/v1/fleets', framing, body));
  const answer = await connection.answer();
  connection.destroy();
  expect(answer.status).toBe(201);
  return JSON.parse(answer.body).fleet_id;
}
