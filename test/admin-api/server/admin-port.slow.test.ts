/** Trial of the admin port by hostile clients, with and without a token; D26 and D27 in plain HTTP. */

import { connect, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../../src/device/simulator/run/free-port.ts';
import { createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { RawConnection, requestText } from '../../harness/devices/raw.ts';
import { ownCertificate, TestServer } from '../../harness/server/server.ts';
import { openFiles, ownMebibytes, pause, until } from '../../harness/server/vitals.ts';

type Plain = RawConnection<Socket>;

const bodyTimeoutSeconds = 3;
const headSeconds = 10;
const adminConnectionsMax = 200;
const pipelinedMax = 16;
/** Memory that all attacks of a test together may add to the process, garbage that is not collected yet included. */
const growthMebibytesMax = 250;
const json = { 'Content-Type': 'application/json' };

let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;
let bearer: { Authorization: string };
beforeAll(async () => {
  server = await TestServer.start({
    bodyTimeoutSeconds,
    adminConnectionsMax,
    adminHosts: 'fleetpost.example.com, Ops.Example.com',
    adminUnreadBytesMax: 33_554_432,
    deviceBytesPerSecondMax: 0,
    mailboxMailsMax: 2_000,
  });
  fleet = await createFleet(server);
  device = await fleet.createDevice();
  bearer = { Authorization: `Bearer ${server.token}` };
});
afterAll(() => server[Symbol.asyncDispose]());

const open = (): Promise<Plain> => RawConnection.openPlain(server.report.admin_url);
const crowd = (count: number): Promise<Plain[]> => Promise.all(Array.from({ length: count }, open));
const leave = (connections: readonly Plain[]): void => {
  for (const connection of connections) connection.destroy();
};

/** One request on a connection of its own, after which it is left. */
async function ask(text: string) {
  const connection = await open();
  connection.write(text);
  const answer = await connection.answer(text.startsWith('HEAD'));
  connection.destroy();
  return answer;
}

async function expectWell(): Promise<void> {
  expect((await fetch(`${server.report.admin_url}/readyz`)).status).toBe(200);
  expect((await device.heartbeat()).status).toBe(201);
  expect([server.isRunning, server.stderr]).toEqual([true, '']);
}

describe('without a token', () => {
  it('whoever pipelines and never reads is closed, and takes no memory', async () => {
    const before = ownMebibytes(server);
    const many = Buffer.from(requestText('GET', '/metrics', {}).repeat(20_000));
    const connections = await crowd(8);
    for (const { socket } of connections) {
      socket.pause();
      socket.write(many);
      // Bytes that the kernel does not take wait here, and are gone with the connection.
      socket.on('error', () => {});
    }
    await until(
      () => connections.every(({ socket }) => socket.destroyed || socket.writableLength === 0),
      20_000,
    );
    await expectWell();
    expect(ownMebibytes(server) - before).toBeLessThan(growthMebibytesMax);
    leave(connections);
  });

  it('so many pipelined requests as may wait are answered in order, and one more closes the connection', async () => {
    const connection = await open();
    const requests = Array.from({ length: pipelinedMax + 1 }, (_, index) =>
      requestText('GET', index % 2 ? '/healthz' : '/nowhere', { 'X-Request-Id': `request-${index}` }),
    );
    connection.write(requests.join(''));
    for (const index of requests.keys()) {
      const { status, headers } = await connection.answer();
      expect([status, headers.find(([name]) => name === 'x-request-id')?.[1]]).toEqual([
        index % 2 ? 200 : 404,
        `request-${index}`,
      ]);
    }
    connection.write([...requests, ...requests].join(''));
    await connection.closed();
    await expectWell();
  });

  it('is refused before its body is read, and the connection closed: a client that still sends it reads why', async () => {
    const connections = await crowd(100);
    for (const connection of connections) {
      const framing = { ...json, 'Content-Length': '60000' };
      connection.write(requestText('POST', '/admin/v1/fleets', framing, '{"name":"'));
    }
    for (const connection of connections) {
      const { status, headers, body } = await connection.answer();
      expect([status, JSON.parse(body).error]).toEqual([401, 'invalid_token']);
      expect(headers).toContainEqual(['connection', 'close']);
      // It goes on, as if it had not read yet.
      connection.write('x'.repeat(10_000));
      await connection.closed();
      connection.destroy();
    }
    for (const path of ['/healthz', '/nowhere', '/admin/v1/%zz', '/metrics']) {
      const connection = await open();
      connection.write(requestText('GET', path, { 'Content-Length': '60000' }, '{'));
      await connection.answer();
      await connection.closed();
    }
    const expecting = await open();
    const expects = { ...json, 'Content-Length': '2', Expect: '100-continue' };
    expecting.write(requestText('POST', '/admin/v1/fleets', expects));
    expect((await expecting.answer()).status).toBe(401);
    expecting.write('{}');
    await expecting.closed();
  });

  it('a head that trickles in, or never comes, is given so much time', async () => {
    const connections = await crowd(30);
    for (const [index, connection] of connections.entries())
      if (index % 2) connection.write('GET /healthz HTTP/1.1\r\nHost: local');
    await Promise.all(connections.map((connection) => connection.closed()));
    const slow = await open();
    slow.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');
    const drip = setInterval(() => slow.write('a'), 100);
    await slow.closed();
    clearInterval(drip);
  });

  it('a head that is too large, and garbage, close their connection and nothing else', async () => {
    const before = openFiles(server);
    const large = await ask(requestText('GET', '/healthz', { 'X-Large': 'a'.repeat(100_000) }));
    expect(large.status).toBe(431);
    const lines = await open();
    lines.write(`GET /healthz HTTP/1.1\r\n${'X: y\r\n'.repeat(10_000)}`);
    await lines.closed();
    const valid = requestText(
      'POST',
      '/admin/v1/fleets',
      { ...bearer, ...json, 'Content-Length': '9999' },
      '{',
    );
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), fc.nat(valid.length), async (bytes, at) => {
        const connection = await open();
        connection.write(Buffer.concat([Buffer.from(valid.slice(0, at)), bytes]));
        connection.socket.end();
        await connection.closed();
        connection.destroy();
      }),
      { numRuns: 150 },
    );
    await expectWell();
    await until(() => openFiles(server) <= before + 4);
  });

  it('connections that do nothing make room for those that come, and never more are open than may be', async () => {
    const before = openFiles(server);
    const idle = await crowd(adminConnectionsMax - 20);
    for (const connection of idle) connection.write(requestText('GET', '/healthz', {}));
    for (const connection of idle) expect((await connection.answer()).status).toBe(200);
    const more = await crowd(adminConnectionsMax);
    expect(openFiles(server) - before).toBeLessThanOrEqual(adminConnectionsMax + 4);
    // Nobody has asked on these yet: they are given the time of a head, or until others need the place.
    await Promise.all(more.map((connection) => connection.closed()));
    await expectWell();
    leave([...idle, ...more]);
  });
});

describe('without a token, where all connections are taken', () => {
  it('heads that come byte by byte make room for whoever asks', async () => {
    const slow = await crowd(adminConnectionsMax);
    for (const { socket } of slow) socket.write('GET /healthz HTTP/1.1\r\nX-Slow: ');
    const drip = setInterval(() => {
      for (const { socket } of slow) if (!socket.destroyed) socket.write('a');
    }, 500);
    const readyz = requestText('GET', '/readyz', {});
    for (let time = 0; time < 50; time += 1) expect((await ask(readyz)).status).toBe(200);
    clearInterval(drip);
    leave(slow);
  });
});

describe('with a token', () => {
  it('a body that does not come is refused in time, and a long one may take its time while it comes', async () => {
    const connection = await open();
    const framing = { ...bearer, ...json, 'Content-Length': '60' };
    connection.write(requestText('POST', '/admin/v1/fleets', framing, '{"name":"'));
    const drip = setInterval(() => connection.write('a'), 500);
    const { status, body } = await connection.answer();
    clearInterval(drip);
    expect([status, JSON.parse(body)]).toEqual([
      400,
      { error: 'bad_request', msg: 'The body did not arrive in time (bodyTimeoutSeconds).' },
    ]);
    await connection.closed();
    connection.destroy();

    const slow = await open();
    const type = { 'Content-Type': 'application/x-ndjson', 'Transfer-Encoding': 'chunked' };
    const path = `/admin/v1/fleets/${fleet.fleetId}/devices:import`;
    slow.write(requestText('POST', path, { ...bearer, ...type }));
    const made = (): number => slow.text.split('"result":"created"').length - 1;
    for (let line = 0; line < 6; line += 1) {
      await pause(bodyTimeoutSeconds * 500);
      const text = `${JSON.stringify({ device_id: `SLOW00000${line}` })}\n`;
      slow.write(`${text.length.toString(16)}\r\n${text}\r\n`);
    }
    await until(() => made() === 6);
    expect(slow.isClosed).toBe(false);
    // Then it stands still.
    await slow.closed();
    slow.destroy();
    await expectWell();
  });

  it('Expect: 100-continue is answered once the token is known', async () => {
    const connection = await open();
    const expects = { ...bearer, ...json, 'Content-Length': '2', Expect: '100-continue' };
    connection.write(requestText('POST', '/admin/v1/fleets', expects));
    expect((await connection.answer()).status).toBe(100);
    connection.write('{}');
    expect((await connection.answer()).status).toBe(201);
    connection.destroy();
  });

  it('waiting for records and following them goes on beyond the times of heads and bodies', async () => {
    const path = `/fleets/${fleet.fleetId}/consumers/patient`;
    expect((await server.admin('PUT', path, {})).status).toBe(201);
    const follow = await open();
    follow.write(requestText('GET', `/admin/v1/fleets/${fleet.fleetId}/records?follow=true`, bearer));
    const wait = { max: 1, wait_seconds: bodyTimeoutSeconds + headSeconds + 2, worker: 'a' };
    const fetched = await server.admin<{ records?: unknown[] }>('POST', `${path}/fetch`, wait);
    expect([fetched.status, fetched.body.records ?? []]).toEqual([200, []]);
    expect((await device.request('POST', '/v1/datapoint/reading', { late: 1 })).status).toBe(201);
    await until(() => follow.text.includes('"late":1'));
    expect(follow.isClosed).toBe(false);
    follow.destroy();
  });

  it('of answers that nobody reads the oldest are cut off, and whoever reads gets his whole', async () => {
    const records = 120;
    const payload = JSON.stringify({ text: 'x'.repeat(60_000) });
    for (let sent = 0; sent < records; sent += 1)
      expect((await device.request('POST', '/v1/datapoint/reading', payload)).status).toBe(201);
    const answerBytes = records * payload.length;
    const latest = `/fleets/${fleet.fleetId}/records:latest?limit=${records}&device=${device.deviceId}`;
    const list = requestText('GET', `/admin/v1${latest}`, bearer);
    const { hostname, port } = new URL(server.report.admin_url);
    // Nearly half a gigabyte together.
    const readers = Array.from({ length: 60 }, () => {
      const reader = { socket: connect(Number(port), hostname), bytes: 0, isClosed: false, isRefused: false };
      reader.socket.on('error', () => {});
      reader.socket.on('close', () => {
        reader.isClosed = true;
      });
      reader.socket.write(list);
      return reader;
    });
    const read = async (): Promise<number> => {
      return (await server.admin<{ items: unknown[] }>('GET', latest)).body.items.length;
    };
    // While they are all made at once, one that is being read may be the oldest.
    await expect.poll(() => read().catch(() => 0)).toBe(records);
    for (let time = 0; time < 10; time += 1) expect(await read()).toBe(records);
    for (const reader of readers) {
      reader.socket.on('data', (chunk: Buffer) => {
        // Who waited too long for his turn is told so, and keeps his connection.
        reader.isRefused ||= reader.bytes === 0 && chunk.toString('latin1', 0, 12) === 'HTTP/1.1 503';
        reader.bytes += chunk.length;
      });
    }
    const isWhole = ({ bytes }: { bytes: number }): boolean => bytes > answerBytes;
    await until(
      () => readers.every((reader) => reader.isClosed || reader.isRefused || isWhole(reader)),
      45_000,
    );
    // The kernel takes some megabytes of each answer, and the rest is what counts.
    const whole = readers.filter(isWhole).length;
    expect(whole).toBeGreaterThan(0);
    expect(whole).toBeLessThan(readers.length / 2);
    for (const { socket } of readers) socket.destroy();
    await expectWell();
  });
});

describe('D27: whose page, and under which name', () => {
  it('a Host that is neither of loopback nor configured is refused on every route', async () => {
    const port = new URL(server.report.admin_url).port;
    const names = [
      'localhost',
      'LOCALHOST.',
      '127.0.0.1',
      '127.9.9.9',
      '[::1]',
      'fleetpost.example.com',
      'OPS.example.com',
    ];
    for (const name of names) {
      for (const host of [name, `${name}:${port}`, `${name}:1`])
        expect((await ask(requestText('GET', '/healthz', { Host: host }))).status, host).toBe(200);
    }
    const others = [
      'evil.example',
      `evil.example:${port}`,
      '127.0.0.1.evil.example',
      '0.0.0.0',
      '10.0.0.1',
      '',
      'example.com',
      '[::]',
    ];
    for (const host of others) {
      for (const [method, path] of [
        ['GET', '/healthz'],
        ['GET', '/metrics'],
        ['GET', '/openapi.json'],
        ['GET', '/nowhere'],
        ['GET', '/admin/v1/fleets'],
        ['POST', '/admin/v1/backup'],
      ] as const) {
        const { status, body } = await ask(requestText(method, path, { ...bearer, Host: host }));
        expect([status, JSON.parse(body).error], `${path} as ${host}`).toEqual([403, 'host_refused']);
      }
    }
    expect((await ask('GET /readyz HTTP/1.0\r\n\r\n')).status, 'as some balancers ask').toBe(200);
  });

  it('a request that a browser makes for a page of another site is refused, and no site is let in by CORS', async () => {
    for (const [site, status] of [
      ['cross-site', 403],
      ['same-site', 403],
      ['same-origin', 200],
      ['none', 200],
    ] as const) {
      const headers = { ...bearer, 'Sec-Fetch-Site': site, Origin: 'https://evil.example' };
      const answer = await ask(requestText('GET', '/admin/v1/fleets', headers));
      expect(answer.status, site).toBe(status);
      expect(answer.headers.filter(([name]) => name.startsWith('access-control'))).toEqual([]);
    }
    for (const path of [
      '/',
      '/healthz',
      '/metrics',
      '/openapi.json',
      '/admin/v1/fleets',
      '/console/',
      '/console/%',
      '/x',
    ]) {
      const { headers } = await ask(requestText('GET', path, bearer));
      expect(headers, path).toContainEqual(['x-content-type-options', 'nosniff']);
      const kept = headers.filter(([name]) => name === 'cache-control');
      expect(kept, path).toEqual([['cache-control', path === '/console/' ? 'no-cache' : 'no-store']]);
    }
    const preflight = { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'POST' };
    const { status, headers } = await ask(requestText('OPTIONS', '/admin/v1/fleets', preflight));
    expect(status).toBe(404);
    expect(headers.filter(([name]) => name.startsWith('access-control'))).toEqual([]);
  });
});

describe('D26: the probe', () => {
  it('health and metrics can be had on an address of their own, under any name, and nothing else', async () => {
    const port = await freePort();
    await using probed = await TestServer.start({ probe: `0.0.0.0:${port}`, adminConnectionsMax: 16 });
    const addresses = Object.values(networkInterfaces()).flatMap((all = []) => all);
    const own =
      addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? '127.0.0.1';
    const url = `http://${own}:${port}`;
    const get = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
      const connection = await RawConnection.openPlain(url);
      connection.write(requestText(method, path, { Host: 'prometheus.example', ...headers }));
      const answer = await connection.answer(method === 'HEAD');
      connection.destroy();
      return answer;
    };
    expect(await get('/healthz')).toMatchObject({ status: 200, body: '{"ok":true}' });
    expect((await get('/readyz?a=b', {}, 'HEAD')).status).toBe(200);
    const metrics = await get('/metrics');
    expect(metrics.status).toBe(200);
    expect(metrics.body).toContain('fleetpost_requests_total');
    expect(metrics.headers).toContainEqual(['content-type', expect.stringContaining('text/plain')]);
    const token = { Authorization: `Bearer ${probed.token}` };
    for (const path of ['/', '/openapi.json', '/admin/v1/fleets', '/metrics/', '/healthz/..', '//healthz'])
      expect((await get(path, token)).status, path).toBe(404);
    expect((await get('/metrics', token, 'POST')).status).toBe(404);
    const flood = await Promise.all(Array.from({ length: 40 }, () => RawConnection.openPlain(url)));
    for (const connection of flood)
      connection.write('GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_000));
    await Promise.all(flood.map((connection) => connection.closed()));
    expect((await get('/readyz')).status).toBe(200);
  });

  it('the admin API itself is refused in plain HTTP on other addresses than loopback, as is a probe that cannot listen', async () => {
    await expect(TestServer.start({ ...ownCertificate, admin: '0.0.0.0:0' })).rejects.toThrow(
      /speaks plain HTTP and cannot listen on 0.0.0.0/,
    );
    const taken = new URL(server.report.admin_url).host;
    await expect(TestServer.start({ probe: taken })).rejects.toThrow(/Cannot listen on .* for probe/);
    await expect(TestServer.start({ probe: 'nowhere' })).rejects.toThrow(/probe must be HOST:PORT/);
  });
});
