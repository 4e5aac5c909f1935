/** Decisions D22 and D23, sections 4 and 9: HTTPS, endpoints, common headers, lives of connections. */

import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { connect, type SecureVersion } from 'node:tls';
import { uuidv7 } from 'uuidv7';
import { beforeAll, describe, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { type RawAnswer, RawConnection, requestText } from '../harness/devices/raw.ts';
import { ask, type Route, routes, valuesOf } from '../harness/devices/routes.ts';
import { engine, TestServer } from '../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
  device = await fleet.createDevice();
});
const json = { 'Content-Type': 'application/json' };
const ok = '{"ok":true}';

/** That route by a device of this file, with what a client sends along. */
function askAs(one: TestDevice, route: Route, headers: Record<string, string> = {}): Promise<RawAnswer> {
  return ask(server, route, { ...one.credentials, ...(route.body !== undefined && json), ...headers });
}

describe('D22: HTTPS only', () => {
  it('D22: a request without TLS gets no answer', async () => {
    const socket = connectPlain(server.port, '127.0.0.1');
    let received = '';
    socket
      .on('error', () => {})
      .on('data', (bytes) => {
        received += bytes.toString('latin1');
      });
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(socket, 'close');
    expect(received).not.toContain('HTTP/');
    expect((await device.heartbeat()).status).toBe(201);
  });

  const tls = async (version: SecureVersion): Promise<RawConnection> => {
    const [minVersion, maxVersion] = [version, version];
    // The client's own security level must not be what refuses an old version.
    const ciphers = 'DEFAULT@SECLEVEL=0';
    const socket = connect({
      port: server.port,
      ca: server.ca,
      servername: 'localhost',
      ciphers,
      minVersion,
      maxVersion,
    });
    await once(socket, 'secureConnect');
    return new RawConnection(socket);
  };

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('D22: %s is spoken', async (version) => {
    const connection = await tls(version);
    connection.write(requestText('POST', '/v1/heartbeat', { ...device.credentials }));
    expect((await connection.answer()).status).toBe(201);
    connection.destroy();
  });

  it.each(['TLSv1', 'TLSv1.1'] as const)('D22: %s is not', async (version) => {
    await expect(tls(version)).rejects.toMatchObject({ code: expect.stringMatching(/PROTOCOL_VERSION/) });
  });
});

describe('D22, section 5.7: every authenticated response has exactly one of each common header', () => {
  function expectCommonHeaders(answer: RawAnswer, contentType = 'application/json'): void {
    expect(valuesOf(answer, 'cache-control')).toEqual(['no-store']);
    expect(valuesOf(answer, 'connection')).toEqual(['keep-alive']);
    expect(valuesOf(answer, 'keep-alive')).toEqual(['timeout=8']);
    expect(valuesOf(answer, 'content-type')).toEqual([contentType]);
  }

  it.each(
    routes.map(
      (route) => [`${route.method} ${route.path.replace(/[-0-9a-f]{36}$/, ':mail_id')}`, route] as const,
    ),
  )('D22: %s', async (_, route) => {
    const answer = await askAs(device, route);
    expectCommonHeaders(answer, route.path === '/v1/events' ? 'text/event-stream' : 'application/json');
  });

  it('D22: fetches and settled mail', async () => {
    const one = await fleet.createDevice();
    const { mailId } = await one.sendMail();
    const statuses: number[] = [];
    for (const route of [
      { method: 'GET', path: '/v1/mailbox/next' },
      { method: 'GET', path: '/v1/mailbox/next?shape=envelope' },
      { method: 'HEAD', path: '/v1/mailbox/next' },
      { method: 'PUT', path: `/v1/mailbox/requeue/${mailId}` },
      { method: 'PUT', path: `/v1/mailbox/reject/${mailId}` },
      { method: 'PUT', path: `/v1/mailbox/ack/${mailId}` },
      { method: 'GET', path: '/v1/mailbox/next' },
    ]) {
      const answer = await askAs(one, route);
      statuses.push(answer.status);
      expectCommonHeaders(answer);
      if (route.method === 'HEAD') expect(valuesOf(answer, 'content-length')).toEqual([]);
    }
    expect(statuses).toEqual([200, 200, 200, 200, 200, 409, 204]);
  });

  it('D22: replays and errors', async () => {
    const key = { 'Idempotency-Key': uuidv7() };
    const send = (path: string, body: string, headers = {}) =>
      askAs(device, { method: 'POST', path, body }, headers);
    const answers = [
      await send('/v1/datapoint/reading', '{"a":1}', key),
      await send('/v1/datapoint/reading', '{"a":1}', key),
      await send('/v1/datapoint/reading', '{"a":2}', key),
      await send('/v1/datapoint/reading', '{'),
      await send('/v1/datapoint/nothing', '{"a":1}'),
      await send('/v1/datapoint/reading', 'x'.repeat(65_537)),
      await send('/v1/datapoint/reading', '{"a":1}', { 'Content-Type': 'text/plain' }),
      await askAs(device, { method: 'PUT', path: '/v1/mailbox/ack/x' }),
      await askAs(device, { method: 'GET', path: '/v1/events' }, { Accept: 'text/html' }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 400, 400, 404, 413, 415, 400, 400]);
    for (const answer of answers) expectCommonHeaders(answer);
  });

  it('D22: answers without credentials, and to wrong ones, say how long the connection is kept', async () => {
    const unknown = { ...device.credentials, 'X-Device-ID': 'NOSUCHDEVI' };
    const answers = [
      await ask(server, { method: 'GET', path: '/' }),
      await ask(server, { method: 'GET', path: '/nowhere' }),
      await ask(server, { method: 'GET', path: '/v1' }),
      await ask(server, { method: 'GET', path: '/v1' }, unknown),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 400, 401]);
    for (const answer of answers) expectCommonHeaders(answer);
  });

  it('D22: an answer that is the last of its connection says so, and not how long it is kept', async () => {
    const one = await fleet.createDevice();
    const close = { ...one.credentials, Connection: 'close' };
    const asked: [string, string, Record<string, string>, string?][] = [
      ['POST', '/v1/heartbeat', close],
      ['GET', '/v1/mailbox/next', close],
      ['HEAD', '/v1/mailbox/next', { ...close, Connection: 'Close' }],
      ['GET', '/', { Connection: 'close' }],
      // Clients of whom nothing is known: the library keeps what such a client does not read.
      ['HEAD', '/', {}],
      ['HEAD', '/v1/mailbox/next', {}],
      ['GET', '/', { 'Content-Length': 'x' }],
      ['POST', '/v1/heartbeat', { ...one.credentials, 'Content-Length': '33554433' }],
      ['POST', '/v1/heartbeat', { ...one.credentials, 'Transfer-Encoding': 'chunked' }, '0\r\n\r\n'],
      ['GET', '/v1/mailbox/next', { ...one.credentials, 'Transfer-Encoding': 'chunked' }, '0\r\n\r\n'],
    ];
    const statuses: number[] = [];
    for (const [method, path, headers, body] of asked) {
      const connection = await RawConnection.open(server);
      connection.write(requestText(method, path, headers, body));
      const answer = await connection.answer(method === 'HEAD');
      statuses.push(answer.status);
      expect([path, valuesOf(answer, 'connection')]).toEqual([path, ['close']]);
      expect(valuesOf(answer, 'keep-alive')).toEqual([]);
      await connection.closed();
    }
    expect(statuses).toEqual([201, 204, 204, 200, 404, 400, 400, 413, 201, 204]);
  });

  it('D22: a connection is kept for many requests', async () => {
    const connection = await RawConnection.open(server);
    for (let request = 0; request < 50; request += 1) {
      connection.write(requestText('POST', '/v1/heartbeat', { ...device.credentials }));
      expect((await connection.answer()).status).toBe(201);
    }
    expect(connection.isClosed).toBe(false);
    connection.destroy();
  });
});

describe('section 4, section 9, D23: the endpoints', () => {
  it('section 9, D23: GET /', async () => {
    const answer = await ask(server, { method: 'GET', path: '/' });
    const body = '{"fostrom":true,"endpoint":"device","latest_endpoint_version":1}';
    expect([answer.status, answer.body]).toEqual([200, body]);
    expect(valuesOf(answer, 'content-type')).toEqual(['application/json']);
  });

  it('section 9, D23: GET /v1', async () => {
    const answer = await device.request('GET', '/v1');
    expect(answer.status).toBe(200);
    const { fleetId: fleet_id, deviceId: device_id } = device;
    const expected = {
      fostrom: true,
      endpoint: 'device',
      endpoint_version: 1,
      device: { fleet_id, device_id },
    };
    expect(answer.text).toBe(JSON.stringify(expected));
  });

  it.each(['/v1/heartbeat', '/v1/datapoint/reading', '/v1/msg/note'])(
    'section 4: POST %s is 201 {"ok":true}',
    async (path) => {
      const body = path === '/v1/heartbeat' ? undefined : '{"a":1}';
      const answer = await device.request('POST', path, body);
      expect([answer.status, answer.text]).toEqual([201, ok]);
    },
  );

  it('section 4: a query on any route does no harm', async () => {
    expect((await device.request('POST', '/v1/heartbeat?a=b&c')).status).toBe(201);
    expect((await device.request('POST', '/v1/datapoint/reading?a=b', '{"a":1}')).status).toBe(201);
    expect((await device.request('GET', '/?a=b')).status).toBe(200);
  });

  it('D23: X-Messages-Available is on every 201 heartbeat, true exactly while there is mail', async () => {
    const one = await fleet.createDevice();
    const available = async (): Promise<string | null> =>
      (await one.heartbeat()).headers.get('x-messages-available');
    expect(await available()).toBe('false');
    const [first, second] = [await one.sendMail(), await one.sendMail()];
    expect(await available()).toBe('true');
    await one.settle('ack', first.mailId);
    expect(await available()).toBe('true');
    await one.settle('requeue', second.mailId);
    expect(await available()).toBe('true');
    await one.settle('reject', second.mailId);
    expect(await available()).toBe('false');
  });

  it('D28: so it is, once, on every other 2xx of a device but the event stream, and on no error', async () => {
    for (const route of routes) {
      const answer = await askAs(device, route);
      const isTold = answer.status < 300 && route.path !== '/v1/events';
      expect([route.path, valuesOf(answer, 'x-messages-available')]).toEqual([
        route.path,
        isTold ? ['false'] : [],
      ]);
    }
    const refused = await ask(server, { method: 'POST', path: '/v1/heartbeat' });
    expect([refused.status, valuesOf(refused, 'x-messages-available')]).toEqual([400, []]);
    const root = await ask(server, { method: 'GET', path: '/' });
    expect([root.status, valuesOf(root, 'x-messages-available')]).toEqual([200, []]);
  });
});

describe('D22: requests on the wire', () => {
  it('D22: pipelined requests that can be answered at once are answered in order', async () => {
    const one = await fleet.createDevice();
    const { mailId } = await one.sendMail('note', '{"pipe":1}');
    const anyone = [
      ['GET', '/', 200, '{"fostrom":true,"endpoin'],
      ['GET', '/nowhere', 404, '{"error":"route_not_foun'],
      ['PUT', '/v1/mailbox/next', 404, '{"error":"route_not_foun'],
    ] as const;
    const device = [
      ['GET', '/v1/mailbox/size', 200, '{"size":1}'],
      ['HEAD', '/v1/mailbox/next', 200, ''],
      ['GET', '/nowhere', 404, '{"error":"route_not_foun'],
      ['GET', '/v1/mailbox/next', 200, '{"pipe":1}'],
      ['POST', '/v1/heartbeat', 201, ok],
      ['GET', '/v1/mailbox/next?shape=envelope', 200, `{"id":"${mailId}`.slice(0, 24)],
    ] as const;
    // Devices in a database are not known at once: there the next test's rule holds.
    const asked = engine === 'lmdb' ? [...anyone, ...device] : anyone;
    const connection = await RawConnection.open(server);
    const texts = asked.map(([method, path]) => requestText(method, path, { ...one.credentials }));
    connection.write(texts.join(''));
    for (const [method, , status, body] of asked) {
      const answer = await connection.answer(method === 'HEAD');
      expect([answer.status, answer.body.slice(0, 24)]).toEqual([status, body]);
    }
    expect(connection.text).toBe('');
    connection.destroy();
  });

  it('D22: one that comes behind a write that still waits may find the connection closed, and a retry is safe', async () => {
    const one = await fleet.createDevice();
    const key = { 'Idempotency-Key': uuidv7() };
    const send = requestText(
      'POST',
      '/v1/datapoint/reading',
      { ...one.credentials, ...json, ...key, 'Content-Length': '7' },
      '{"a":1}',
    );
    const connection = await RawConnection.open(server);
    connection.write(send + requestText('POST', '/v1/heartbeat', { ...one.credentials }));
    await expect.poll(() => connection.isClosed || connection.text.split('HTTP/1.1').length > 2).toBe(true);
    connection.destroy();
    expect((await one.request('POST', '/v1/datapoint/reading', '{"a":1}', key)).status).toBe(201);
    const again = await one.request('POST', '/v1/datapoint/reading', '{"a":1}', key);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
  });
});

describe('D24: WebSocket upgrades are answered as the plain requests they also are', () => {
  const upgrade = {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol': 'mqtt',
  };

  it.each([
    ['/', 200],
    ['/v1', 200],
    ['/v1/mailbox/size', 200],
    ['/v1/mailbox/next', 204],
    ['/mqtt', 404],
    ['/v1/ws', 404],
  ])('D24: GET %s is %d', async (path, status) => {
    const answer = await askAs(await fleet.createDevice(), { method: 'GET', path }, upgrade);
    expect(answer.status).toBe(status);
    expect(valuesOf(answer, 'upgrade')).toEqual([]);
  });
});
