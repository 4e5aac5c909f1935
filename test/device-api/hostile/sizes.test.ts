/** Hostile trial, D9: bodies and heads at their limits and beyond. */

import { fetch, type RequestInit } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, oneConnection, type TestDevice } from '../../harness/devices/device.ts';
import { RawConnection, requestText } from '../../harness/devices/raw.ts';
import { TestServer } from '../../harness/server/server.ts';
import { datapointHead, errorOf, expectAlive } from '../../harness/server/vitals.ts';
import { readRecords } from '../../harness/storage/log.ts';

const limit = 65_536;
const chunkBytes = 16_384;

let server: TestServer;
let device: TestDevice;
let accepted = 0;

beforeAll(async () => {
  server = await TestServer.start();
  device = await (await createFleet(server)).createDevice();
});

afterAll(() => server[Symbol.asyncDispose]());

type Framing = 'declared' | 'chunked';
/** Sends the body, reads the answer, and sends a heartbeat after it: both statuses. */
type Client = (body: string, framing: Framing) => Promise<[number, number]>;

const chunked = { 'Transfer-Encoding': 'chunked' };

function frame(body: string, framing: Framing): Buffer[] {
  if (framing === 'declared') return [Buffer.from(body)];
  const chunks: Buffer[] = [];
  for (let start = 0; start < body.length; start += chunkBytes) {
    const text = body.slice(start, start + chunkBytes);
    chunks.push(Buffer.from(`${text.length.toString(16)}\r\n${text}\r\n`));
  }
  return [...chunks, Buffer.from('0\r\n\r\n')];
}

const raw: Client = async (body, framing) => {
  let connection = await RawConnection.open(server);
  const declared = { 'Content-Length': String(body.length) };
  connection.write(datapointHead(device, framing === 'declared' ? declared : chunked));
  for (const bytes of frame(body, framing)) connection.write(bytes);
  const answer = await connection.answer();
  if (answer.status === 413) expect(errorOf(answer)).toBe('request_too_large');
  if (framing === 'chunked') {
    await connection.closed();
    connection = await RawConnection.open(server);
  }
  connection.write(requestText('POST', '/v1/heartbeat', { ...device.credentials }));
  const next = await connection.answer();
  connection.destroy();
  return [answer.status, next.status];
};

const undici: Client = async (body, framing) => {
  const agent = oneConnection(server);
  const init: RequestInit = {
    method: 'POST',
    dispatcher: agent,
    headers: { ...device.credentials, 'Content-Type': 'application/json' },
    duplex: 'half',
    body: framing === 'declared' ? body : new Blob([body]).stream(),
  };
  const answer = await fetch(`${server.url}/v1/datapoint/reading`, init);
  expect(await answer.text()).toContain(answer.status === 413 ? '"error":"request_too_large"' : '"ok":true');
  const next = await device.request('POST', '/v1/heartbeat', undefined, {}, agent);
  await agent.destroy();
  return [answer.status, next.status];
};

function bodyOf(bytes: number): string {
  return `{"a":"${'x'.repeat(bytes - 8)}"}`;
}

const clients = { 'raw TLS': raw, undici };
const ways = Object.entries(clients).flatMap(([name, send]) =>
  (['declared', 'chunked'] as const).map((framing) => ({ name, framing, send })),
);

describe.each(ways)('D9: a body from $name, $framing', ({ framing, send }) => {
  it('is taken at 65,536 bytes', async () => {
    expect(await send(bodyOf(limit), framing)).toEqual([201, 201]);
    accepted += 1;
  });

  it.each([limit + 1, 1_000_000, 1_048_576, 1_048_577, 20_000_000])(
    'gets a 413 that can be read at %i bytes, and the client goes on',
    async (bytes) => expect(await send(bodyOf(bytes), framing)).toEqual([413, 201]),
  );
});

it('D9: the 413 to a flood of chunks never tears the connection', async () => {
  const body = bodyOf(2_000_000);
  for (let i = 0; i < 60; i += 1) expect([i, ...(await raw(body, 'chunked'))]).toEqual([i, 413, 201]);
});

it('D9: a message and a request that takes no body have the same limit', async () => {
  const large = {
    ...device.credentials,
    'Content-Length': String(limit + 1),
    'Content-Type': 'application/json',
  };
  for (const [method, path] of [
    ['POST', '/v1/msg/note'],
    ['POST', '/v1/heartbeat'],
    ['GET', '/v1/mailbox/next'],
  ] as const) {
    const connection = await RawConnection.open(server);
    connection.write(requestText(method, path, large, bodyOf(limit + 1)));
    expect([path, (await connection.answer()).status]).toEqual([path, 413]);
    connection.write(requestText('POST', '/v1/heartbeat', { ...device.credentials }));
    expect((await connection.answer()).status).toBe(201);
    connection.destroy();
  }
});

describe('D9: the head of a request', () => {
  const ask = async (path: string, headers: Record<string, string>): Promise<[number, boolean]> => {
    const connection = await RawConnection.open(server);
    connection.write(requestText('POST', path, { ...device.credentials, ...headers }));
    const { status } = await connection.answer();
    if (status === 431) await connection.closed(1_000);
    const closed = connection.isClosed;
    connection.destroy();
    return [status, closed];
  };
  const filler = (bytes: number): Record<string, string> => ({ 'X-Filler': 'x'.repeat(bytes) });
  const many = (count: number): Record<string, string> =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`X-${index}`, 'y']));

  it('may have nearly 4 KiB, or 80 more headers', async () => {
    expect(await ask('/v1/heartbeat', filler(3_800))).toEqual([201, false]);
    expect(await ask('/v1/heartbeat', many(80))).toEqual([201, false]);
  });

  it.each([4_200, 16_000])('gets 431 with a header of %i bytes', async (bytes) => {
    expect(await ask('/v1/heartbeat', filler(bytes))).toEqual([431, true]);
  });

  it('gets 431 with 200 headers, long or short', async () => {
    expect(await ask('/v1/heartbeat', many(200))).toEqual([431, true]);
    const long = Object.entries(many(200)).map(([name]): [string, string] => [name, 'z'.repeat(30)]);
    expect(await ask('/v1/heartbeat', Object.fromEntries(long))).toEqual([431, true]);
  });

  it('gets 404 with a long path, and 431 with one that is too long', async () => {
    expect(await ask(`/v1/${'x'.repeat(3_500)}`, {})).toEqual([404, false]);
    expect(await ask(`/v1/msg/${'x'.repeat(3_500)}`, {})).toEqual([404, false]);
    expect(await ask(`/v1/mailbox/next?${'x'.repeat(5_000)}`, {})).toEqual([431, true]);
    expect(await ask(`/${'x'.repeat(10_000)}`, {})).toEqual([431, true]);
  });
});

it('what was accepted is stored, and nothing else', async () => {
  await expectAlive(server, device);
  expect(await server.stop()).toBe(0);
  const sizes = (await readRecords(server.report)).map(({ payload }) => payload.length);
  expect(sizes).toEqual(Array(accepted).fill(limit));
});
