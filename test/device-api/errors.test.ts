/** Decisions D7 and D8, section 7: codes, statuses and bodies of errors. */

import { uuidv7 } from 'uuidv7';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { RawConnection, requestText } from '../harness/devices/raw.ts';
import { ask, expectError, valuesOf } from '../harness/devices/routes.ts';
import { shards, TestServer } from '../harness/server/server.ts';
import { readRecords } from '../harness/storage/log.ts';

/** Payload that marks what this file has accepted: the last test looks for anything else in the log. */
const accepted = '{"accepted":true}';
const refused = '{"refused":true}';
const json = { 'Content-Type': 'application/json' };
const limit = 65_536;

let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;
beforeAll(async () => {
  server = await TestServer.start();
  fleet = await createFleet(server);
  device = await fleet.createDevice();
});
afterAll(() => server[Symbol.asyncDispose]());

/** An object of exactly that many bytes. */
function bodyOf(bytes: number, name = 'refused'): string {
  const frame = `{"${name}":""}`;
  return frame.replace('""', `"${'x'.repeat(bytes - frame.length)}"`);
}

/** A device whose one mail was settled by `ack`. */
async function settledMail(one: TestDevice): Promise<string> {
  const { mailId } = await one.sendMail();
  await one.settle('ack', mailId);
  return mailId;
}

/** Sends requests that each open an event stream until one more than there are workers: one has to be refused. */
async function exhaustStreams(on: TestServer, inFleet: TestFleet) {
  const connections: RawConnection[] = [];
  try {
    for (let stream = 0; stream <= shards; stream += 1) {
      const { credentials } = await inFleet.createDevice();
      const connection = await RawConnection.open(on);
      connections.push(connection);
      connection.write(requestText('GET', '/v1/events', { ...credentials, Accept: 'text/event-stream' }));
      const answer = await connection.answer();
      if (answer.status !== 200) return answer;
    }
  } finally {
    for (const connection of connections) connection.destroy();
  }
  throw new Error('every stream was let in');
}

describe('D7: each code has its one status, and a body of error and msg', () => {
  it('D7: 400 bad_request', async () => {
    expectError(await device.next('?shape=triangle'), 400, 'bad_request');
    const html = await device.request('GET', '/v1/events', undefined, { Accept: 'text/html' });
    expectError(html, 400, 'bad_request');
  });

  it('D7: 400 invalid_json and invalid_body', async () => {
    expectError(await device.request('POST', '/v1/datapoint/reading', '{'), 400, 'invalid_json');
    expectError(await device.request('POST', '/v1/datapoint/reading', '[]'), 400, 'invalid_body');
    expectError(await device.request('POST', '/v1/msg/note', '[]'), 400, 'invalid_body');
  });

  it('D7: 400 schema_mismatch, with errors of path and msg', async () => {
    await fleet.putSchema('datapoint', 'strict', { properties: { accepted: { type: 'string' } } });
    const errors = [{ path: '/accepted', msg: expect.stringMatching(/string/) }];
    const answer = await device.request('POST', '/v1/datapoint/strict', accepted);
    expectError(answer, 400, 'schema_mismatch', { errors });
  });

  it('D7: 400 invalid_mail_id', async () => {
    expectError(await device.settle('ack', 'nonsense'), 400, 'invalid_mail_id');
  });

  it('D7: 400 invalid_idempotency_key and idempotency_key_reused', async () => {
    const send = (body: string, key: string) =>
      device.request('POST', '/v1/datapoint/reading', body, { 'Idempotency-Key': key });
    expectError(await send(refused, 'nonsense'), 400, 'invalid_idempotency_key');
    const key = uuidv7();
    await send(accepted, key);
    expectError(await send(refused, key), 400, 'idempotency_key_reused');
  });

  it('D7, section 7: 404 schema_not_found and mail_not_found', async () => {
    expectError(await device.request('POST', '/v1/datapoint/none', refused), 404, 'schema_not_found');
    expectError(await device.settle('ack', uuidv7()), 404, 'mail_not_found');
  });

  it('D7, section 7: 404 route_not_found, as JSON, for any method', async () => {
    for (const method of ['GET', 'POST', 'DELETE', 'PATCH', 'OPTIONS', 'BREW']) {
      const answer = await ask(server, { method, path: '/nowhere/at/all?x=1' });
      expectError(answer, 404, 'route_not_found');
      expect(valuesOf(answer, 'content-type')).toEqual(['application/json']);
    }
    const head = await ask(server, { method: 'HEAD', path: '/nowhere' });
    expect([head.status, head.body]).toEqual([404, '']);
  });

  it.each([
    '/v1/',
    '//v1',
    '/V1',
    '/v1/heartbeat/',
    '/v1/mailbox',
    '/v1/mailbox/ack',
    '/v1/datapoint',
    '/v1/datapoint/',
    '/v1/msg/note/',
  ])('D7: %s is no route', async (path) => {
    for (const method of ['GET', 'POST', 'PUT']) {
      expectError(await ask(server, { method, path }, { ...device.credentials }), 404, 'route_not_found');
    }
  });

  it('D7: 409 mail_already_settled', async () => {
    const mailId = await settledMail(device);
    expectError(await device.settle('reject', mailId), 409, 'mail_already_settled');
  });

  it('D7: 413 request_too_large and 415 unsupported_media_type', async () => {
    const large = await device.request('POST', '/v1/msg/note', bodyOf(limit + 1));
    const msg = `The body is larger than ${limit} bytes (bodyBytesMax).`;
    expectError(large, 413, 'request_too_large', { msg });
    const text = { 'Content-Type': 'text/plain' };
    const typed = await device.request('POST', '/v1/msg/note', refused, text);
    expectError(typed, 415, 'unsupported_media_type');
  });

  it('D7: 503 unavailable with Retry-After, and msg names the limit that was hit', async () => {
    await using small = await TestServer.start({ streamsPerWorkerMax: 1 });
    const answer = await exhaustStreams(small, await createFleet(small));
    expectError(answer, 503, 'unavailable');
    expect(valuesOf(answer, 'retry-after')).toEqual([expect.stringMatching(/^[1-9]\d*$/)]);
    expect(answer.body).toContain('streamsPerWorkerMax');
  });
});

describe('D8: strictStatuses answers only statuses of the table in section 7', () => {
  let strict: TestServer;
  let strictFleet: TestFleet;
  let one: TestDevice;
  beforeAll(async () => {
    strict = await TestServer.start({ strictStatuses: true, streamsPerWorkerMax: 1 });
    strictFleet = await createFleet(strict);
    one = await strictFleet.createDevice();
  });
  afterAll(() => strict[Symbol.asyncDispose]());

  it('D8: 409, 413 and 415 become 400', async () => {
    const conflict = await one.settle('reject', await settledMail(one));
    expectError(conflict, 400, 'mail_already_settled');
    expect(conflict.headers.get('x-mailbox-size')).toBe('0');
    const large = await one.request('POST', '/v1/msg/note', bodyOf(limit + 1));
    expectError(large, 400, 'request_too_large');
    const text = { 'Content-Type': 'text/plain' };
    expectError(await one.request('POST', '/v1/msg/note', refused, text), 400, 'unsupported_media_type');
  });

  it('D8: 503 becomes 500 and keeps Retry-After', async () => {
    const answer = await exhaustStreams(strict, strictFleet);
    expectError(answer, 500, 'unavailable');
    expect(valuesOf(answer, 'retry-after')).toHaveLength(1);
  });

  it('D8: statuses of the table stay', async () => {
    expectError(await one.request('POST', '/v1/datapoint/none', refused), 404, 'schema_not_found');
    expect((await one.request('GET', '/v1', undefined, { 'X-Device-ID': 'NODEVICE00' })).status).toBe(401);
    expect((await one.heartbeat()).status).toBe(201);
    expect((await one.next()).status).toBe(204);
  });
});

describe('D9, section 8: a body has at most 65,536 bytes', () => {
  const sends = ['/v1/datapoint/reading', '/v1/msg/note'];
  it.each(sends)('D9: %s takes exactly 65,536 bytes, declared or chunked', async (path) => {
    const body = bodyOf(limit, 'accepted');
    for (const chunked of [false, true]) {
      const route = { method: 'POST', path, body, chunked };
      expect((await ask(server, route, { ...device.credentials, ...json })).status).toBe(201);
    }
  });

  it.each([limit + 1, 70_000, 1_048_576, 1_500_000])('D9: %d bytes are 413', async (bytes) => {
    for (const path of sends) {
      for (const chunked of [false, true]) {
        const route = { method: 'POST', path, body: bodyOf(bytes), chunked };
        const answer = await ask(server, route, { ...device.credentials, ...json });
        expectError(answer, 413, 'request_too_large');
      }
    }
  });

  it.each([
    ['POST', '/v1/heartbeat'],
    ['PUT', '/v1/mailbox/ack/01890000-0000-7000-8000-000000000000'],
    ['GET', '/v1'],
  ])('section 8: the limit holds for all requests: %s %s', async (method, path) => {
    const headers = { ...device.credentials, ...json };
    expectError(
      await ask(server, { method, path, body: bodyOf(limit + 1) }, headers),
      413,
      'request_too_large',
    );
  });

  it('D9: a request that declares far too much is told so without sending it', async () => {
    const connection = await RawConnection.open(server);
    const headers = { ...device.credentials, ...json, 'Content-Length': '104857600' };
    connection.write(requestText('POST', '/v1/msg/note', headers, '{"re'));
    expectError(await connection.answer(), 413, 'request_too_large');
    connection.destroy();
  });

  it('D9: a client that sends 5 MB before it reads sees its 413', async () => {
    const answer = await device.request('POST', '/v1/msg/note', bodyOf(5_000_000));
    expectError(answer, 413, 'request_too_large');
  });

  it('D9: after a 413 the connection goes on with the next request', async () => {
    const connection = await RawConnection.open(server);
    const body = bodyOf(200_000);
    const headers = { ...device.credentials, ...json, 'Content-Length': String(body.length) };
    connection.write(requestText('POST', '/v1/msg/note', headers, body));
    expectError(await connection.answer(), 413, 'request_too_large');
    connection.write(requestText('POST', '/v1/heartbeat', { ...device.credentials }));
    expect((await connection.answer()).status).toBe(201);
    connection.destroy();
  });
});

describe('D9: requests that are not sound HTTP/1.1', () => {
  const head = (): string =>
    Object.entries({ Host: 'localhost', ...device.credentials, ...json })
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('');
  const chunk = `${refused.length.toString(16)}\r\n${refused}\r\n0\r\n\r\n`;
  const length = refused.length;

  const send = async (framing: string, body: string): Promise<RawConnection> => {
    const connection = await RawConnection.open(server);
    connection.write(`POST /v1/datapoint/reading HTTP/1.1\r\n${head()}${framing}\r\n${body}`);
    return connection;
  };

  it.each([
    ['two different lengths', `Content-Length: ${length}\r\nContent-Length: 0\r\n`, refused],
    ['the same length twice', `Content-Length: ${length}\r\nContent-Length: ${length}\r\n`, refused],
    ['one encoding more', 'Transfer-Encoding: gzip, chunked\r\n', chunk],
    ['chunked twice', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', chunk],
  ])('D9: %s: 400 bad_request, and the connection is closed', async (_, framing, body) => {
    const connection = await send(framing, body);
    expectError(await connection.answer(), 400, 'bad_request');
    await connection.closed();
  });

  it.each([
    ['another encoding', 'Transfer-Encoding: gzip\r\n', refused],
    ['a length and an encoding', `Content-Length: ${length}\r\nTransfer-Encoding: chunked\r\n`, chunk],
    ['an encoding and a length', `Transfer-Encoding: chunked\r\nContent-Length: ${length}\r\n`, chunk],
  ])('D9: %s: 400 from the library itself, and the connection is closed', async (_, framing, body) => {
    const connection = await send(framing, body);
    await connection.closed();
    expect(connection.text).toMatch(/^HTTP\/1\.1 400 /);
    expect(connection.text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  it.each([`${length}, ${length}`, `+${length}`, '-1', '0x11', '1e1', 'x', '99999999999999999999'])(
    'D9: Content-Length: %s is refused and the connection closed',
    async (value) => {
      const connection = await send(`Content-Length: ${value}\r\n`, refused);
      await connection.closed();
      expect(connection.text).toMatch(/^HTTP\/1\.1 400 /);
    },
  );

  it.each([
    ['headers over 4 KiB', (): string => `GET /v1 HTTP/1.1\r\n${head()}X: ${'x'.repeat(5_000)}\r\n\r\n`],
    ['HTTP/1.0', (): string => `GET /v1 HTTP/1.0\r\n${head()}\r\n`],
    ['HTTP/2', (): string => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['no version', (): string => 'GET /v1\r\n\r\n'],
    ['a space before the colon', (): string => `GET /v1 HTTP/1.1\r\n${head()}X : y\r\n\r\n`],
  ])('D9: %s: the library answers, or closes, and the server goes on', async (_, text) => {
    const connection = await RawConnection.open(server);
    connection.write(text());
    await connection.closed();
    expect(connection.text).toMatch(/^(HTTP\/1\.1 [45]\d\d |$)/);
    expect((await device.heartbeat()).status).toBe(201);
  });
});

it('D7, D9: nothing is stored of any request that was refused', async () => {
  await server.stop();
  const records = await readRecords(server.report);
  expect(records.filter(({ payload }) => !payload.startsWith('{"accepted"'))).toEqual([]);
});
