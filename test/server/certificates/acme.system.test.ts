/** Certificates from a real ACME directory: orders, outages, refusals, renewal. */

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type PeerCertificate } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Config } from '../../../src/server/configuration/config.ts';
import { createFleet } from '../../harness/devices/device.ts';
import { RawConnection, requestText } from '../../harness/devices/raw.ts';
import { mainFile, ownCertificate, TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { metric, pause, until } from '../../harness/server/vitals.ts';
import { Pebble } from './pebble.ts';

const domain = 'fleet.example';
/** A directory that nobody reached is asked again after 5 s. */
const retriedMs = 30_000;

function configFor(pebble: Pebble, domains = domain): Partial<Config> {
  return {
    ...ownCertificate,
    acmeDomains: domains,
    acmeTermsAgreed: true,
    acmeContact: 'ops@fleet.example',
    acmeDirectory: pebble.directory,
    acmeDirectoryCaFile: pebble.caFile,
    acmeListen: `127.0.0.1:${pebble.challengePort}`,
    logLevel: 'info',
  };
}

/** Shakes hands as a client that trusts these authorities; returns whom it was shown. @throws for one it does not trust. */
async function shown(port: number, options: ConnectionOptions): Promise<PeerCertificate> {
  const socket = connect({ host: '127.0.0.1', port, servername: domain, ...options });
  try {
    await once(socket, 'secureConnect');
    return socket.getPeerCertificate();
  } finally {
    socket.destroy();
  }
}

async function serves(server: TestServer, root: string): Promise<boolean> {
  return shown(server.port, { ca: root }).then(
    () => true,
    () => false,
  );
}

function certificateShow(server: TestServer): Record<string, unknown> {
  const args = [mainFile, 'certificate', 'show', server.report.cert_file, '--json'];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
}

describe('a certificate from an ACME directory', () => {
  const folder = temporaryFolder();
  let pebble: Pebble;

  beforeAll(async () => {
    pebble = await Pebble.start();
  });

  afterAll(async () => {
    await pebble[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  it('is obtained while the server runs with a temporary one, served by both listeners, and kept for the next start', async () => {
    const names = `${domain}, www.${domain}`;
    const config = { ...configFor(pebble, names), admin: '0.0.0.0:0' };
    const root = await pebble.root();
    const server = await TestServer.start(config, folder);
    await until(() => serves(server, root));
    const { subjectaltname = '' } = await shown(server.port, { ca: root, servername: `www.${domain}` });
    expect(subjectaltname.split(', ').sort()).toEqual([`DNS:${domain}`, `DNS:www.${domain}`]);
    const { hostname, port: adminPort } = new URL(server.report.admin_url);
    expect(hostname).toBe(domain);
    await until(async () => (await shown(Number(adminPort), { ca: root })).subjectaltname === subjectaltname);
    const tls = join(server.report.cert_file, '..');
    expect(readdirSync(tls).map((name) => [name, statSync(join(tls, name)).mode & 0o777])).toEqual(
      ['account-key.pem', 'cert.pem', 'key.pem'].map((name) => [name, 0o600]),
    );
    const knock = connectTcp(pebble.challengePort, '127.0.0.1');
    await expect(once(knock, 'connect'), 'the listener for challenges is open').rejects.toThrow();
    await server.stop();

    const { orders } = pebble;
    expect(orders).toBe(1);
    const again = await TestServer.start(config, folder);
    expect(await serves(again, root)).toBe(true);
    await again.stop();
    expect(again.stderr).not.toContain('ordering');
    expect(pebble.orders).toBe(orders);
  });

  it('is ordered again for other names', async () => {
    const server = await TestServer.start(configFor(pebble, `${domain},new.${domain}`), folder);
    const root = await pebble.root();
    // The last certificate is served until the new one is there.
    expect(await serves(server, root)).toBe(true);
    const name = { ca: root, servername: `new.${domain}` };
    await until(() => shown(server.port, name).then(Boolean, () => false));
    await server.stop();
  });

  it('waits for a directory that is down, says so, and a start does not fail of it', async () => {
    await pebble.stop();
    await using server = await TestServer.start(configFor(pebble));
    await expect(shown(server.port, { ca: readFileSync(pebble.caFile) })).rejects.toThrow('self-signed');
    await until(async () => (await failures(server)) > 0);
    expect(server.stderr).toContain('"msg":"certificate order failed; keeping the current certificate"');
    const { order_failure: failure, not_after: end } = certificateShow(server);
    expect(failure).toContain(
      `The ACME directory cannot be reached at ${pebble.directory}: connect ECONNREFUSED`,
    );
    // Alerts about the end of certificates hear of a temporary one.
    expect(Date.parse(String(end)) - Date.now()).toBeLessThan(86_400_001);
    await pebble.run();
    const root = await pebble.root();
    await until(() => serves(server, root), retriedMs);
    expect(await failures(server)).toBe(0);
    expect(certificateShow(server)).not.toHaveProperty('order_failure');
  });

  it('is refused for a name that leads elsewhere, with the name and the reason', async () => {
    await pebble.lead('elsewhere.example', '127.0.0.2');
    await using server = await TestServer.start(configFor(pebble, `${domain},elsewhere.example`));
    await until(async () => (await failures(server)) > 0);
    expect(certificateShow(server).order_failure).toMatch(
      /^The ACME directory could not verify elsewhere.example over HTTP on port 80: connection: /,
    );
  });

  it('is not even waited for where challenges cannot be answered', async () => {
    await using first = await TestServer.start();
    const config = { ...configFor(pebble), acmeListen: `127.0.0.1:${first.port}` };
    await expect(TestServer.start(config)).rejects.toThrow(
      `Cannot listen on 127.0.0.1:${first.port} for ACME challenges (acmeListen): is another server using it?`,
    );
  });
});

async function failures(server: TestServer): Promise<number> {
  const [count = Number.NaN] = await metric(server, 'fleetpost_acme_failures');
  return count;
}

it('a certificate is renewed with a third of its life left, and open connections live on', async () => {
  const validitySeconds = 24;
  await using pebble = await Pebble.start(validitySeconds);
  await using server = await TestServer.start(configFor(pebble));
  const ca = await pebble.root();
  await until(() => serves(server, ca));
  const first = await shown(server.port, { ca });
  const { credentials } = await (await createFleet(server)).createDevice();
  const socket = connect({ host: '127.0.0.1', port: server.port, servername: domain, ca });
  await once(socket, 'secureConnect');
  const connection = new RawConnection(socket);
  const heartbeat = async (): Promise<number> => {
    connection.write(requestText('POST', '/v1/heartbeat', { ...credentials, 'Content-Length': '0' }));
    return (await connection.answer()).status;
  };
  const isRenewed = async (): Promise<boolean> => {
    expect(await heartbeat()).toBe(201);
    await pause(500);
    return (await shown(server.port, { ca })).serialNumber !== first.serialNumber;
  };
  await until(isRenewed);
  expect(Date.parse(first.valid_to) - Date.now()).toBeLessThan((validitySeconds / 3 + 1) * 1_000);
  expect(await heartbeat()).toBe(201);
  connection.destroy();
});
