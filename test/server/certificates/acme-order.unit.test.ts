import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { freePort } from '../../../src/device/simulator/run/free-port.ts';
import { AcmeFiles, orderFailureOf } from '../../../src/server/certificates/acme-files.ts';
import { orderCertificate } from '../../../src/server/certificates/acme-order.ts';
import { AcmeRenewal } from '../../../src/server/certificates/acme-renewal.ts';
import type { AcmeTerms } from '../../../src/server/certificates/acme-terms.ts';
import { createAuthority, createServerCertificate } from '../../../src/server/certificates/authority.ts';
import { temporaryFolder } from '../../harness/machine/temporary-folder.ts';
import { pause, until } from '../../harness/server/vitals.ts';

const hour = 3_600;
const folder = temporaryFolder();
let directory: Server;
let answer: RequestListener;
let requests: number;
let terms: AcmeTerms;
let accountKey: string;

/** A directory that does what pebble never does: limit rates, hang, answer nonsense. */
beforeAll(async () => {
  const hosts = { hosts: ['localhost', '127.0.0.1'], days: 1 };
  const authority = await createAuthority(hosts);
  const { certificate: cert, key } = await createServerCertificate(authority, hosts);
  const directoryCaFile = join(folder, 'ca.pem');
  writeFileSync(directoryCaFile, authority.certificate);
  directory = createServer({ cert, key }, (request, response) => {
    requests += 1;
    answer(request, response);
  }).listen(0, '127.0.0.1');
  await once(directory, 'listening');
  const { port } = directory.address() as AddressInfo;
  accountKey = key;
  terms = {
    domains: ['fleet.example'],
    directory: `https://127.0.0.1:${port}/directory`,
    directoryCaFile,
    contact: '',
    listen: { host: '127.0.0.1', port: await freePort() },
  };
});

beforeEach(() => {
  requests = 0;
});

afterAll(() => {
  directory.close();
  directory.closeAllConnections();
  rmSync(folder, { recursive: true });
});

function order(changes: Partial<AcmeTerms> = {}, signal = new AbortController().signal) {
  return orderCertificate({ terms: { ...terms, ...changes }, accountKey, signal });
}

const limited: RequestListener = (_request, response) => {
  const problem = { type: 'urn:ietf:params:acme:error:rateLimited', detail: 'too many certificates' };
  response.writeHead(429, { 'Retry-After': String(hour) }).end(JSON.stringify(problem));
};

describe('an order that a directory does not take', () => {
  it('fails at once with its reason and the time it names, instead of being waited for', async () => {
    answer = limited;
    await expect(order()).rejects.toMatchObject({
      message: 'The ACME directory answered 429: rateLimited: too many certificates',
      isUnreachable: false,
      retryAfterSeconds: hour,
    });
    expect(requests).toBe(1);
  });

  it('of a directory that is out of service, or not trusted, or no directory, says so', async () => {
    answer = (_request, response) => response.writeHead(503).end('<html>');
    await expect(order()).rejects.toMatchObject({ isUnreachable: true, retryAfterSeconds: 0 });
    await expect(order({ directoryCaFile: '' })).rejects.toThrow(/cannot be reached at .*certificate/);
    answer = (_request, response) => response.end('"what?"');
    await expect(order()).rejects.toThrow('Unable to locate API resource URL');
  });

  it('takes no more of an answer than a certificate could have', async () => {
    answer = (_request, response) => response.end('x'.repeat(1_000_000));
    await expect(order()).rejects.toThrow('its answer is too long');
  });

  it('is given up at once when the server stops', async () => {
    answer = () => {};
    const stopping = new AbortController();
    const ordered = order({}, stopping.signal);
    await until(() => requests === 1);
    stopping.abort();
    await expect(ordered).rejects.toThrow('aborted');
  });
});

it('a restart does not ask a directory before the time that it named', async () => {
  answer = limited;
  const files = new AcmeFiles(terms, folder);
  await files.makeUsable(terms.domains);
  const options = { terms, files, renew: async () => {}, log: createLog('silent') };
  const first = await AcmeRenewal.start(options);
  await until(() => first.failures === 1);
  await first.close();
  const failure = orderFailureOf(files.tls.certFile);
  expect(failure?.reason).toContain('too many certificates');
  expect(Date.parse(failure?.retry_at ?? '') - Date.now()).toBeGreaterThan((hour - 60) * 1_000);
  const served = readFileSync(files.tls.certFile, 'utf8');

  requests = 0;
  const again = await AcmeRenewal.start(options);
  // Long enough for what should not come.
  await pause(200);
  await again.close();
  expect(requests).toBe(0);
  expect(readFileSync(files.tls.certFile, 'utf8')).toBe(served);
});
