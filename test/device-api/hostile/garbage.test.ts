/** Hostile trial: garbage, cut requests and resets. */

import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { requestText } from '../../harness/devices/raw.ts';
import { TestServer } from '../../harness/server/server.ts';
import {
  datapoint,
  datapointHead,
  expectAlive,
  openFiles,
  openStreams,
  ownMebibytes,
  pause,
  until,
} from '../../harness/server/vitals.ts';
import { clientHello, openTcp, openTls } from './vanishing.ts';

/** Clients of each kind, and how many of them at a time. */
const clients = 100;
const atOnce = 20;
/** Memory of the process that all of it together may leave behind. */
const growthMebibytesMax = 32;
const spareFiles = 4;

let server: TestServer;
let device: TestDevice;
let hello: Buffer;
let requests: string[];
let filesBefore = 0;
let mebibytesBefore = 0;

beforeAll(async () => {
  server = await TestServer.start();
  device = await (await createFleet(server)).createDevice();
  hello = await clientHello();
  const headers = { ...device.credentials };
  requests = [
    datapoint(device, '{"celsius":21.5}'),
    `${datapointHead(device, { 'Transfer-Encoding': 'chunked' })}5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n`,
    requestText('POST', '/v1/heartbeat', headers),
    requestText('GET', '/v1/mailbox/next?shape=envelope', headers),
    requestText('HEAD', '/v1/mailbox/next', headers),
    requestText('PUT', '/v1/mailbox/ack/0190a5c8-7f3b-7000-8000-000000000000', headers),
    requestText('GET', '/v1/events', { ...headers, Accept: 'text/event-stream' }),
  ];
  // Warm, so that what is measured afterwards is what garbage leaves behind.
  await crowd(async () => {
    const { tls } = await openTls(server);
    await converse(tls, Buffer.from(requests.join('')));
  });
  filesBefore = openFiles(server);
  mebibytesBefore = ownMebibytes(server);
});

afterAll(() => server[Symbol.asyncDispose]());

async function crowd(client: (index: number) => Promise<void>): Promise<void> {
  for (let first = 0; first < clients; first += atOnce) {
    await Promise.all(Array.from({ length: atOnce }, (_, offset) => client(first + offset)));
  }
}

/** Sends all of it and FIN behind it. Answers all that came until the server closed too. */
async function converse(socket: TLSSocket | Socket, bytes: Buffer): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.end(bytes);
  await Promise.race([
    closed,
    pause(20_000).then(() => Promise.reject(new Error('the server did not close'))),
  ]);
  return text;
}

function statusesIn(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]));
}

describe('clients that vanish with a reset', () => {
  const stages: [string, () => Promise<Socket>][] = [
    ['before the handshake', () => openTcp(server)],
    [
      'in the middle of their first TLS record',
      async () => {
        const tcp = await openTcp(server);
        tcp.write(hello.subarray(0, 100));
        return tcp;
      },
    ],
    [
      'in the middle of the handshake',
      async () => {
        const tcp = await openTcp(server);
        tcp.write(hello);
        await once(tcp, 'data');
        return tcp;
      },
    ],
    ['after the handshake', async () => (await openTls(server)).tcp],
    ['in the middle of the headers', () => havingSent((text) => text.slice(0, 90))],
    ['in the middle of the body', () => havingSent((text) => text.slice(0, -9))],
    ['while their datapoint waits for the disk', () => havingSent((text) => text)],
    ['with many requests behind each other', () => havingSent((text) => text.repeat(20))],
    [
      'with a stream open',
      async () => {
        const { tls, tcp } = await openTls(server);
        tls.write(requests[6] as string);
        await once(tls, 'data');
        return tcp;
      },
    ],
  ];

  async function havingSent(part: (text: string) => string): Promise<Socket> {
    const { tls, tcp } = await openTls(server);
    await new Promise<void>((resolve) =>
      tls.write(part(datapoint(device, '{"celsius":21.5}')), () => resolve()),
    );
    return tcp;
  }

  it.each(stages)('%s', async (_, stage) => {
    await crowd(async (index) => {
      const tcp = await stage();
      // Some at once, some when the server has had time to begin.
      if (index % 2 === 0) await pause(index % 5);
      tcp.resetAndDestroy();
    });
    await expectAlive(server, device);
  });
});

describe('clients that end their side', () => {
  it('with a request cut off anywhere get an answer or the end of the connection', async () => {
    const text = datapoint(device, '{"celsius":21.5}');
    const lengths = Array.from({ length: text.length }, (_, length) => length);
    while (lengths.length > 0) {
      await Promise.all(
        lengths.splice(0, atOnce).map(async (length) => {
          const { tls } = await openTls(server);
          expect([[], [400]]).toContainEqual(
            statusesIn(await converse(tls, Buffer.from(text.slice(0, length)))),
          );
        }),
      );
    }
  });

  it('behind a whole request get its answer or the end of the connection', async () => {
    for (const request of requests) {
      const { tls } = await openTls(server);
      const statuses = statusesIn(await converse(tls, Buffer.from(request)));
      expect([[], [200], [201], [204], [404]]).toContainEqual(statuses);
    }
  });

  it('before or in the middle of the handshake', async () => {
    for (const length of [0, 1, 5, 6, 100, hello.length - 1, hello.length]) {
      await converse(await openTcp(server), hello.subarray(0, length));
    }
  });
});

describe('random bytes', () => {
  const runs = { numRuns: 60, seed: 1 };
  const edit = fc.record({
    at: fc.nat(),
    removed: fc.nat({ max: 8 }),
    added: fc.oneof(
      fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
      fc
        .constantFrom(
          '\r\n',
          '\r\n\r\n',
          ':',
          ' ',
          '\0',
          '%',
          'Content-Length: 1\r\n',
          'Transfer-Encoding: chunked\r\n',
          'x'.repeat(5_000),
        )
        .map((text) => Buffer.from(text)),
    ),
  });
  const edits = fc.array(edit, { minLength: 1, maxLength: 4 });

  function apply(bytes: Buffer, changes: { at: number; removed: number; added: Buffer }[]): Buffer {
    let edited = bytes;
    for (const { at, removed, added } of changes) {
      const from = at % (edited.length + 1);
      edited = Buffer.concat([edited.subarray(0, from), added, edited.subarray(from + removed)]);
    }
    return edited;
  }

  /** Never a 500 or a 503: those would say that garbage got where it should not. */
  function expectKnown(text: string): void {
    for (const status of statusesIn(text)) {
      expect([100, 200, 201, 204, 400, 401, 404, 409, 413, 415, 431, 505]).toContain(status);
    }
  }

  it('in place of a handshake', async () => {
    const noise = fc.uint8Array({ minLength: 1, maxLength: 600 }).map((bytes) => Buffer.from(bytes));
    const hellos = edits.map((changes) => apply(hello, changes));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(noise, hellos), { maxLength: 10 }), async (inputs) => {
        await Promise.all(inputs.map(async (bytes) => converse(await openTcp(server), bytes)));
      }),
      runs,
    );
    await expectAlive(server, device);
  });

  it('in place of a request', async () => {
    const noise = fc.uint8Array({ minLength: 1, maxLength: 3_000 }).map((bytes) => Buffer.from(bytes));
    await fc.assert(
      fc.asyncProperty(fc.array(noise, { maxLength: 8 }), async (inputs) => {
        await Promise.all(
          inputs.map(async (bytes) => expectKnown(await converse((await openTls(server)).tls, bytes))),
        );
      }),
      runs,
    );
    await expectAlive(server, device);
  });

  it('inside of requests, which follow each other', async () => {
    const text = fc.array(fc.nat({ max: 6 }), { minLength: 1, maxLength: 4 });
    const input = fc.tuple(text, edits).map(([indices, changes]) => ({ indices, changes }));
    await fc.assert(
      fc.asyncProperty(fc.array(input, { maxLength: 10 }), async (inputs) => {
        await Promise.all(
          inputs.map(async ({ indices, changes }) => {
            const bytes = Buffer.from(indices.map((index) => requests[index]).join(''));
            expectKnown(await converse((await openTls(server)).tls, apply(bytes, changes)));
          }),
        );
      }),
      { ...runs, numRuns: 120 },
    );
    await expectAlive(server, device);
  });
});

it('nothing of all that is left: no file, no stream, no memory to speak of', async () => {
  await until(async () => (await openStreams(server)) === 0);
  await until(() => openFiles(server) <= filesBefore + spareFiles);
  expect(ownMebibytes(server) - mebibytesBefore).toBeLessThan(growthMebibytesMax);
  await expectAlive(server, device);
  expect(await server.stop()).toBe(0);
});
