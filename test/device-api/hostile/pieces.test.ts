/** Hostile trial: bodies that come byte by byte and do not end, as fast as the server reads. */

import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bodyPiecesMax } from '../../../src/device-api/body/body.ts';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { RawConnection, requestText } from '../../harness/devices/raw.ts';
import { TestServer } from '../../harness/server/server.ts';
import { datapointHead, expectAlive } from '../../harness/server/vitals.ts';

const chunked = { 'Transfer-Encoding': 'chunked' };
const json = { 'Content-Type': 'application/json' };
const tinyChunk = '1\r\n1\r\n';
/** What fits into a read of the library and into no buffer of the kernel: it reads on in the same turn. */
const flood = Buffer.from(tinyChunk.repeat(100_000));
const crowd = 4;

let server: TestServer;
let device: TestDevice;

beforeAll(async () => {
  server = await TestServer.start({ claiming: true });
  device = await (await createFleet(server)).createDevice();
});

afterAll(() => server[Symbol.asyncDispose]());

/** Sends the head and then the same bytes without end. Returns what was answered once the server has closed. */
async function flooded(head: string): Promise<string> {
  const connection = await RawConnection.open(server);
  const { socket } = connection;
  connection.write(head);
  const closed = connection.closed();
  while (!connection.isClosed) {
    // A write that is reset is one way to see the end.
    if (!socket.write(flood)) await Promise.race([once(socket, 'drain').catch(() => closed), closed]);
  }
  await closed;
  connection.destroy();
  return connection.text;
}

/** The same on some connections, until the server has closed all; others are answered meanwhile and after. */
async function floodedByMany(head: string): Promise<string[]> {
  const floods = Promise.all(Array.from({ length: crowd }, () => flooded(head)));
  await expectAlive(server, device);
  const answers = await floods;
  await expectAlive(server, device);
  return answers;
}

describe('a chunked body of one-byte chunks without end ends its connection', () => {
  it.each([
    ['that no route takes', () => requestText('GET', '/', chunked)],
    ['of an unknown route', () => requestText('POST', '/nowhere', { ...json, ...chunked })],
    [
      'of a wrong secret',
      () =>
        requestText('POST', '/v1/datapoint/reading', {
          ...device.credentials,
          'X-Device-Secret': `FOS-${'A'.repeat(32)}`,
          ...json,
          ...chunked,
        }),
    ],
  ])('%s, with its answer if the client reads in time', async (_, head) => {
    for (const text of await floodedByMany(head())) {
      if (text !== '') expect(text).toContain('Connection: close');
    }
  });

  it.each([
    ['of a datapoint', () => datapointHead(device, chunked)],
    ['of a heartbeat', () => requestText('POST', '/v1/heartbeat', { ...device.credentials, ...chunked })],
    ['of a claim', () => requestText('POST', '/v1/claim', { ...json, ...chunked })],
    ['of HEAD', () => requestText('HEAD', '/v1/mailbox/next', { ...device.credentials, ...chunked })],
  ])('%s, in the turn in which it is too much', async (_, head) => {
    for (const text of await floodedByMany(head())) {
      // The client may have lost it to the reset that its further chunks get.
      if (text !== '') expect(text).toMatch(/^HTTP\/1\.1 400 .*Connection: close.*Send larger chunks/s);
    }
  });
});

it('a body may come in as many pieces, and in more if they are larger on average', async () => {
  const few = `1\r\n{\r\n${'1\r\n \r\n'.repeat(bodyPiecesMax - 2)}1\r\n}\r\n0\r\n\r\n`;
  const large = `1\r\n{\r\n${'10\r\n                \r\n'.repeat(4_090)}6\r\n"a":1}\r\n0\r\n\r\n`;
  const tooMany = `${'1\r\n \r\n'.repeat(bodyPiecesMax + 100)}0\r\n\r\n`;
  const statuses: number[] = [];
  for (const body of [few, large, tooMany]) {
    const connection = await RawConnection.open(server);
    connection.write(datapointHead(device, chunked) + body);
    const answer = await connection.answer();
    statuses.push(answer.status);
    await connection.closed();
  }
  // The first is an empty object.
  expect(statuses).toEqual([400, 201, 400]);
});

it('what is behind such a body is not taken for a request', async () => {
  const inner = `${datapointHead(device, { 'Content-Length': '7' })}{"a":1}`;
  const connection = await RawConnection.open(server);
  const pieces = '1\r\n \r\n'.repeat(bodyPiecesMax + 100);
  connection.write(`${datapointHead(device, chunked)}${pieces}0\r\n\r\n${inner.repeat(2)}`);
  await connection.closed();
  expect(connection.text).not.toContain('201 Created');
  await expectAlive(server, device);
});
