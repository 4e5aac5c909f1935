/** Hostile trial, D9: requests that can be read in two ways. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { RawConnection, requestText } from '../../harness/devices/raw.ts';
import { TestServer } from '../../harness/server/server.ts';
import { datapoint, expectAlive, openStreams, until } from '../../harness/server/vitals.ts';
import { readRecords } from '../../harness/storage/log.ts';

let server: TestServer;
let device: TestDevice;
/** Payloads that the log has to hold in the end, and nothing else. */
const accepted: string[] = [];

beforeAll(async () => {
  server = await TestServer.start();
  device = await (await createFleet(server)).createDevice();
});

afterAll(() => server[Symbol.asyncDispose]());

/** One datapoint in each framing; `{"a":1}` marks what must not be stored. */
const body = '{"a":1}';
const chunks = `7\r\n${body}\r\n0\r\n\r\n`;

/** A request line, credentials, and header lines as they are given: `|` stands for the line end. */
function head(line: string, lines: string): string {
  const credentials = Object.entries(device.credentials).map(([name, value]) => `${name}: ${value}\r\n`);
  const rest = lines === '' ? '' : `${lines.replaceAll('|', '\r\n')}\r\n`;
  return `${line} HTTP/1.1\r\nHost: localhost\r\n${credentials.join('')}${rest}\r\n`;
}

function post(lines: string, content: string): string {
  return head('POST /v1/datapoint/reading', `Content-Type: application/json|${lines}`) + content;
}

interface Outcome {
  /** Statuses of every answer that came. */
  statuses: number[];
  /** D7's code, or `the library` for an answer that is not ours, or undefined for a success. */
  error: string | undefined;
  closed: boolean;
}

/**
 * Sends, waits for an answer or the end, and asks again on the same connection: a connection that goes on
 * must be in step, and one that was closed has taken nothing from behind the request.
 */
async function send(text: string): Promise<Outcome> {
  const connection = await RawConnection.open(server);
  connection.write(Buffer.from(text, 'latin1'));
  await until(() => connection.text !== '' || connection.isClosed);
  // Says whether the connection goes on: a server that has ended it takes no notice.
  connection.write(requestText('GET', '/', {}));
  await until(() => connection.isClosed || connection.text.includes('"latest_endpoint_version"'));
  const statuses = [...connection.text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]));
  const error =
    /"error":"(\w+)"/.exec(connection.text)?.[1] ??
    (connection.text.includes('uWebSockets') ? 'the library' : undefined);
  const outcome = { statuses, error, closed: connection.isClosed };
  connection.destroy();
  return outcome;
}

const refusedByUs: Outcome = { statuses: [400], error: 'bad_request', closed: true };
const refusedByLibrary: Outcome = { statuses: [400], error: 'the library', closed: true };
const notHttp11: Outcome = { statuses: [505], error: 'the library', closed: true };
const cut: Outcome = { statuses: [], error: undefined, closed: true };
const unknownRoute: Outcome = { statuses: [404, 200], error: 'route_not_found', closed: false };
const stored: Outcome = { statuses: [201, 200], error: undefined, closed: false };

describe('D9: a request whose length can be read in two ways is refused and its connection closed', () => {
  it.each([
    ['two equal lengths', 'Content-Length: 7|Content-Length: 7', body],
    ['two lengths, the short one first', `Content-Length: 7|Content-Length: 9`, body],
    ['two lengths, the long one first', `Content-Length: 9|Content-Length: 7`, body],
    ['an empty length before a length', 'Content-Length:|Content-Length: 7', body],
    ['an empty length alone', 'Content-Length:', body],
    ['two encodings', 'Transfer-Encoding: chunked|Transfer-Encoding: chunked', chunks],
    ['an empty encoding before chunked', 'Transfer-Encoding:|Transfer-Encoding: chunked', chunks],
    ['an empty encoding and a length', 'Transfer-Encoding:|Content-Length: 7', body],
    ['gzip, chunked', 'Transfer-Encoding: gzip, chunked', chunks],
    ['chunked, gzip', 'Transfer-Encoding: chunked, gzip', chunks],
    ['chunked, chunked', 'Transfer-Encoding: chunked, chunked', chunks],
    ['xchunked', 'Transfer-Encoding: xchunked', chunks],
    ['chunkedx', 'Transfer-Encoding: chunkedx', chunks],
    ['identity', 'Transfer-Encoding: identity', chunks],
    ['gzip', 'Transfer-Encoding: gzip', chunks],
    ['a quoted chunked', 'Transfer-Encoding: "chunked"', chunks],
  ])('%s', async (_, lines, content) => expect(await send(post(lines, content))).toEqual(refusedByUs));

  it.each([
    ['a length and chunked', 'Content-Length: 7|Transfer-Encoding: chunked', chunks],
    ['chunked and a length', 'Transfer-Encoding: chunked|Content-Length: 7', chunks],
    ['a list of lengths', 'Content-Length: 7, 7', body],
    ['a negative length', 'Content-Length: -7', body],
    ['a signed length', 'Content-Length: +7', body],
    ['a hexadecimal length', 'Content-Length: 0x7', body],
    ['a length with a letter', 'Content-Length: 7a', body],
    ['a fraction', 'Content-Length: 7.0', body],
    ['a length beyond 64 bits', 'Content-Length: 18446744073709551623', body],
    ['a folded line', 'X-Folded: one| two|Content-Length: 7', body],
    ['a folded encoding', 'Transfer-Encoding:| chunked', chunks],
    ['a space before the colon', 'Transfer-Encoding : chunked', chunks],
    ['a vertical tab before chunked', 'Transfer-Encoding: \x0bchunked', chunks],
    ['a line without a colon', 'Transfer-Encoding chunked|Content-Length: 7', body],
    ['a line ended by LF alone', 'X-Line: one\nTransfer-Encoding: chunked|Content-Length: 7', body],
    ['a NUL in a value', 'X-Value: a\0b|Content-Length: 7', body],
    ['a control byte in a value', 'X-Value: a\x01b|Content-Length: 7', body],
    ['a NUL in a name', 'X-\0Name: a|Content-Length: 7', body],
    ['a space in a name', 'X Name: a|Content-Length: 7', body],
    ['two hosts', 'Host: elsewhere|Content-Length: 7', body],
  ])('%s, by the library', async (_, lines, content) =>
    expect(await send(post(lines, content))).toEqual(refusedByLibrary),
  );

  it('an encoding whose body is not even chunked is refused by one or the other', async () => {
    const { statuses, closed } = await send(post('Transfer-Encoding: gzip', body));
    expect([statuses, closed]).toEqual([[400], true]);
  });

  it.each(['GET /', 'GET /v1/nothing', 'POST /v1/heartbeat', 'GET /v1/mailbox/next'])(
    'on every route, whether it takes a body or not: %s',
    async (line) => {
      expect(await send(head(line, 'Content-Length: 7|Content-Length: 9') + body)).toEqual(refusedByUs);
      expect(await send(head(line, 'Content-Length: 9|Content-Length: 7') + body)).toEqual(refusedByUs);
      expect(await send(head(line, 'Transfer-Encoding: gzip, chunked') + chunks)).toEqual(refusedByUs);
    },
  );

  it.each([
    'Content-Length: 0|Content-Length: LENGTH',
    'Content-Length:|Content-Length: LENGTH',
    'Content-Length: LENGTH|Transfer-Encoding: chunked',
    'Transfer-Encoding: chunked|Content-Length: LENGTH',
    'Transfer-Encoding: xchunked|X: y',
    'Transfer-Encoding:|Transfer-Encoding: chunked',
  ])('no request is taken out of the body of another: %s', async (lines) => {
    for (const line of ['POST /v1/msg/note', 'POST /v1/heartbeat', 'GET /', 'GET /v1/nothing']) {
      const inner = datapoint(device, '{"smuggled":1}');
      const length = String(inner.length + 5);
      const { closed } = await send(`${head(line, lines.replace('LENGTH', length))}0\r\n\r\n${inner}`);
      expect([line, closed]).toEqual([line, true]);
    }
  });
});

describe('a bad chunk stores nothing', () => {
  it.each([
    ['not hexadecimal', 'zz'],
    ['hexadecimal with a prefix', '0x7'],
    ['negative', '-7'],
    ['signed', '+7'],
    ['beyond 64 bits', 'fffffffffffffffff'],
    ['beyond what the library counts', '7fffffffffffffff'],
  ])('a size that is %s ends the connection', async (_, size) => {
    const { statuses, closed } = await send(
      post('Transfer-Encoding: chunked', `${size}\r\n${body}\r\n0\r\n\r\n`),
    );
    expect([statuses, closed]).toEqual([[400], true]);
  });

  it.each([
    ['too small', '5'],
    ['empty', ''],
  ])('a size that is %s', async (_, size) => {
    const connection = await RawConnection.open(server);
    connection.write(post('Transfer-Encoding: chunked', `${size}\r\n${body}\r\n0\r\n\r\n`));
    expect((await connection.answer()).status).toBe(400);
    connection.destroy();
  });

  it.each(['8', '100000007', 'ffffffff'])('a size that is too large is waited for: %s', async (size) => {
    const connection = await RawConnection.open(server);
    connection.write(post('Transfer-Encoding: chunked', `${size}\r\n${body}`));
    await connection.writeBytewise('\r\n');
    // Long enough for an answer that should not come.
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect([connection.text, connection.isClosed]).toEqual(['', false]);
    connection.destroy();
  });
});

describe('D9: what is not HTTP/1.1 gets what the library answers', () => {
  it.each([
    ['HTTP/1.0', 'POST /v1/heartbeat HTTP/1.0\r\n\r\n'],
    ['HTTP/0.9', 'GET /v1\r\n'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['HTTP/1.2', 'GET / HTTP/1.2\r\nHost: a\r\n\r\n'],
    ['a lower-case version', 'GET / http/1.1\r\nHost: a\r\n\r\n'],
    ['an absolute target', 'GET https://localhost/ HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['OPTIONS *', 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['tabs for spaces', 'GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n'],
    ['two spaces', 'GET  /  HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a space in the method', 'GE T / HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['lines ended by LF alone', 'GET / HTTP/1.1\nHost: a\n\n'],
  ])('%s', async (_, text) => expect(await send(text)).toEqual(notHttp11));

  it('no host', async () => expect(await send('GET / HTTP/1.1\r\n\r\n')).toEqual(refusedByLibrary));

  it('a CR without LF, or a line end in front, is waited for until the idle timer ends it', async () => {
    const texts = [
      'GET / HTTP/1.1\r\nHost: a\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: a\r\r',
      '\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n',
    ];
    expect(await Promise.all(texts.map(send))).toEqual([cut, cut, cut]);
  });
});

describe('a path is compared byte for byte, and a method likewise', () => {
  it.each([
    'POST /v1/%68eartbeat',
    'POST /v1/./heartbeat',
    'POST /v1/x/../heartbeat',
    'POST //v1/heartbeat',
    'POST /v1/heartbeat/',
    'POST /v1/heartbeat#x',
    'POST /V1/heartbeat',
    'POST /v1%2fheartbeat',
    'POST /v1/heartbeat%00',
    'post /v1/heartbeat',
    'TRACE /v1/heartbeat',
    'CONNECT /v1/heartbeat',
    'OPTIONS /v1/heartbeat',
    'BREW /v1/heartbeat',
  ])('%s is no route', async (line) => expect(await send(head(line, ''))).toEqual(unknownRoute));

  it.each(['%72eading', 'a%2f..%2freading', '..%2freading', '%00', '%0d%0aX-Evil:1', '%', '%zz', 'é'])(
    'the schema %s does not exist',
    async (name) => {
      const text = head(`POST /v1/msg/${name}`, '');
      expect(await send(text)).toEqual({ ...unknownRoute, error: 'schema_not_found' });
    },
  );
});

describe('nothing that a client names reaches a header or an event', () => {
  it('a line end in a name, a query or a header does not come back', async () => {
    const answers = await Promise.all(
      [
        head('GET /v1/mailbox/next?shape=%0d%0aX-Evil:1', ''),
        head('GET /v1/mailbox/next?shape=envelope%0d%0aX-Evil:1', ''),
        head('PUT /v1/mailbox/ack/%0d%0aX-Evil:1', ''),
        head('POST /v1/msg/note%0d%0aX-Evil:1', ''),
        head('GET /v1/events', 'Accept: x%0d%0aX-Evil:1'),
        head('POST /v1/heartbeat', '').replace(/X-Fleet-ID: \w+/, 'X-Fleet-ID: X-Evil:1'),
        post('Content-Length: 7|Idempotency-Key: X-Evil:1', body),
      ].map(async (text) => {
        const connection = await RawConnection.open(server);
        connection.write(text);
        const answer = await connection.answer();
        connection.destroy();
        return answer;
      }),
    );
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 404, 400, 400, 400]);
    expect(JSON.stringify(answers)).not.toMatch(/x-evil/i);
  });

  it('mail and schema names with a line end, or any other byte than D2 allows, are refused', async () => {
    const bad = [
      'a%0d%0aX-Evil:1',
      'a%0ab',
      'a%0d',
      'a%00',
      'a%20b',
      'a%3Ab',
      '%C3%A9',
      '%F0%9F%98%80',
      `${'a'.repeat(256)}`,
    ];
    for (const name of bad) {
      const mail = await server.admin(
        'POST',
        `/fleets/${device.fleetId}/devices/${device.deviceId}/mail/${name}`,
        '{}',
      );
      expect([name, mail.status]).toEqual([name, 404]);
      const schema = await server.admin('PUT', `/fleets/${device.fleetId}/schemas/message/${name}`, {});
      expect([name, schema.status >= 400 && schema.status < 500]).toEqual([name, true]);
    }
    expect((await device.next()).status).toBe(204);
  });

  it('a payload with line ends reaches neither the headers of its mail nor the stream that announces it', async () => {
    const stream = await RawConnection.open(server);
    stream.write(head('GET /v1/events', 'Accept: text/event-stream'));
    await stream.answer();
    await until(() => stream.text.includes('event: connected'));
    const { mailId } = await device.sendMail('note', '{"a":"\\r\\n\\r\\ndata: evil"}\r\n');
    await until(() => stream.text.includes(mailId));
    expect(stream.text).not.toContain('evil');
    stream.destroy();
    const { headers } = await device.next();
    expect(JSON.stringify([...headers])).not.toContain('evil');
    await device.settle('ack', mailId);
  });
});

describe('what is well formed is taken', () => {
  it.each([
    ['leading zeros in a length', 'Content-Length: 0000009', '{"a":"A"}'],
    ['a tab before a value', 'Content-Length:\t9', '{"a":"B"}'],
    ['spaces behind a value', 'Content-Length: 9  ', '{"a":"C"}'],
    ['high bytes in a value', 'X-Value: \xe9\xff|Content-Length: 9', '{"a":"F"}'],
  ])('%s', async (_, lines, content) => {
    expect(await send(post(lines, content))).toEqual(stored);
    accepted.push(/\{.*\}/.exec(content)?.[0] ?? '');
  });

  it.each([
    ['chunked in capitals', 'transfer-encoding: CHUNKED', '9\r\n{"a":"D"}\r\n0\r\n\r\n'],
    ['leading zeros in a chunk size', 'Transfer-Encoding: chunked', '0009\r\n{"a":"E"}\r\n0\r\n\r\n'],
  ])('%s, as the last request of its connection', async (_, lines, content) => {
    expect(await send(post(lines, content))).toEqual({ ...stored, statuses: [201], closed: true });
    accepted.push(/\{.*\}/.exec(content)?.[0] ?? '');
  });
});

describe('what comes behind a chunked body is not interpreted', () => {
  const lines = ['GET /', 'GET /nowhere', 'POST /v1/heartbeat', 'GET /v1/mailbox/next', 'POST /v1/claim'];
  const encoding = 'Transfer-Encoding: chunked';

  /**
   * Sends in pieces, each of which the server has read when the next one is sent. Answers the statuses, once it is
   * over.
   */
  async function statusesOf(...pieces: string[]): Promise<number[]> {
    const connection = await RawConnection.open(server);
    for (const piece of pieces) {
      connection.write(piece);
      await connection.taken();
    }
    await connection.closed();
    return [...connection.text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]));
  }

  it.each(lines)('a trailer that looks like a request, sent along: %s', async (line) => {
    const trailer = '0\r\nX: /nowhere HTTP/1.1\r\nHost: a\r\n\r\n';
    expect(await statusesOf(head(line, encoding) + trailer)).toEqual([]);
  });

  it.each(lines)('a trailer or a request that is sent later: %s', async (line) => {
    for (const later of ['X: /nowhere HTTP/1.1\r\nHost: a\r\n\r\n', requestText('GET', '/', {})]) {
      const statuses = await statusesOf(`${head(line, encoding)}0\r\n`, '\r\n', later);
      expect([line, statuses.length]).toEqual([line, 1]);
    }
  });

  it.each(lines)('two bytes in place of the last line end: %s', async (line) => {
    expect(await statusesOf(`${head(line, encoding)}0\r\nXX${requestText('GET', '/', {})}`)).toEqual([]);
  });

  it('a client that sends its body in pieces reads its answer, whatever it is', async () => {
    const stranger = { ...device.credentials, 'X-Device-ID': 'NOSUCHDEVI' };
    const headers = { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' };
    const ask = (path: string, credentials: object): Promise<number[]> =>
      statusesOf(requestText('POST', path, { ...credentials, ...headers }), '7\r\n{"a"', ':2}\r\n0\r\n\r\n');
    expect(await ask('/v1/datapoint/reading', device.credentials)).toEqual([201]);
    accepted.push('{"a":2}');
    expect(await ask('/v1/datapoint/nothing', device.credentials)).toEqual([404]);
    expect(await ask('/v1/datapoint/reading', stranger)).toEqual([401]);
    expect(await ask('/v1/nowhere', {})).toEqual([404]);
  });
});

it('what was accepted is stored, and nothing else', async () => {
  await expectAlive(server, device);
  expect(await openStreams(server)).toBe(0);
  expect(await server.stop()).toBe(0);
  expect((await readRecords(server.report)).map(({ payload }) => payload).sort()).toEqual(accepted.sort());
});
