/** Hostile trial: requests in fragments of any size. */

import fc from 'fast-check';
import { uuidv7 } from 'uuidv7';
import { beforeAll, expect, it } from 'vitest';
import { createFleet } from '../../harness/devices/device.ts';
import { type RawAnswer, RawConnection, requestText } from '../../harness/devices/raw.ts';
import { engine, TestServer } from '../../harness/server/server.ts';
import { datapoint, datapointHead, expectAlive, pause, until } from '../../harness/server/vitals.ts';

interface Request {
  text: string;
  isHead?: boolean;
  /** An interim answer comes first. */
  continues?: boolean;
  /** The server ends the connection after its answer. */
  closes?: boolean;
}

let server: TestServer;
/** Each leaves the mailbox as it is, so that it gets the same answer however often it is sent. */
const reads: Record<string, Request> = {};
const writes: Record<string, Request> = {};
const closing: Record<string, Request> = {};
/** Refused by the library itself, which drops what it has not sent yet of earlier answers. */
const broken: Record<string, Request> = {};
/** Sent a few times only: what repeats it is told to wait (D6). */
const failing: Record<string, Request> = {};

beforeAll(async () => {
  server = await TestServer.shared();
  const fleet = await createFleet(server);
  const device = await fleet.createDevice();
  const headers = { ...device.credentials };
  const { mailId: settled } = await device.sendMail('gone');
  await device.settle('ack', settled);
  const { mailId: waiting } = await device.sendMail('note', '{"text":"Grüße"}');

  const read = (name: string, method: string, path: string, more: object = {}): void => {
    reads[name] = { text: requestText(method, path, { ...headers, ...more }), isHead: method === 'HEAD' };
  };
  read('root', 'GET', '/');
  read('version', 'GET', '/v1');
  read('heartbeat', 'POST', '/v1/heartbeat');
  read('size', 'GET', '/v1/mailbox/size');
  read('next', 'GET', '/v1/mailbox/next');
  read('next in an envelope', 'GET', '/v1/mailbox/next?shape=envelope');
  read('head of next', 'HEAD', '/v1/mailbox/next');
  read('unknown route', 'GET', '/v1/nothing');
  read('no secret', 'POST', '/v1/heartbeat', { 'X-Device-Secret': '' });
  read('bad query', 'GET', '/v1/mailbox/next?shape=round');

  const write = (name: string, text: string, more: Partial<Request> = {}): void => {
    writes[name] = { text, ...more };
  };
  const chunks = '5\r\n{"a":\r\n1\r\n1\r\n1\r\n}\r\n0\r\n\r\n';
  write('datapoint', datapoint(device, '{"celsius":21.5}'));
  write('chunked datapoint', datapointHead(device, { 'Transfer-Encoding': 'chunked' }) + chunks, {
    closes: true,
  });
  write(
    'expected datapoint',
    `${datapointHead(device, { 'Content-Length': '7', Expect: '100-continue' })}{"a":1}`,
    {
      continues: true,
    },
  );
  write(
    'replayed datapoint',
    `${datapointHead(device, { 'Content-Length': '7', 'Idempotency-Key': uuidv7() })}{"a":1}`,
  );
  write('empty message', requestText('POST', '/v1/msg/note', headers));
  write(
    'heartbeat with a body',
    requestText('POST', '/v1/heartbeat', { ...headers, 'Content-Length': '3' }, 'abc'),
  );
  write('repeated ack', requestText('PUT', `/v1/mailbox/ack/${settled}`, headers));
  write('requeue of a sole mail', requestText('PUT', `/v1/mailbox/requeue/${waiting}`, headers));
  write('another verb', requestText('PUT', `/v1/mailbox/reject/${settled}`, headers));
  write('unknown mail', requestText('PUT', `/v1/mailbox/ack/${uuidv7()}`, headers));
  write('bad mail id', requestText('PUT', '/v1/mailbox/ack/1', headers));
  write('another media type', datapoint(device, '{"a":1}').replace('application/json', 'text/plain'));
  write('no JSON', datapoint(device, '{"a":'));
  write('empty datapoint', datapoint(device, '{}'));
  write('unknown schema', datapoint(device, '{"a":1}').replace('reading', 'writing'));
  write('refused stream', requestText('GET', '/v1/events', { ...headers, Accept: 'text/html' }));

  const stranger = { ...headers, 'X-Device-Secret': `FOS-${'x'.repeat(32)}` };
  failing['wrong secret'] = { text: requestText('GET', '/v1', stranger) };

  const close = (name: string, text: string): void => {
    closing[name] = { text, closes: true };
  };
  close('two lengths', `${datapointHead(device, { 'Content-Length': '7', 'content-length': '7' })}{"a":1}`);
  close('gzip', `${datapointHead(device, { 'Transfer-Encoding': 'gzip' })}7\r\n{"a":1}\r\n0\r\n\r\n`);
  const heartbeat = requestText('POST', '/v1/heartbeat', headers);
  broken['HTTP/1.0'] = { text: heartbeat.replace('HTTP/1.1', 'HTTP/1.0'), closes: true };
  broken['no host'] = { text: heartbeat.replace('Host: localhost\r\n', ''), closes: true };
  broken['much header'] = {
    text: heartbeat.replace('\r\n\r\n', `\r\nX-More: ${'x'.repeat(5_000)}\r\n\r\n`),
    closes: true,
  };
  // The first answer of an idempotency key is not like the later ones.
  await sendInPieces(allOf('replayed datapoint'), []);
});

function allOf(...names: string[]): Request[] {
  const all: Record<string, Request> = { ...reads, ...writes, ...closing, ...broken };
  return names.map((name) => all[name] as Request);
}

/** Limit of the library: with so many bytes of a head it answers. */
const headBytesMax = 4_096;
/** And for a head it waits so long. */
const headMs = 10_000;

type Answer = Omit<RawAnswer, 'statusLine'>;

/**
 * The answers to requests that are written one behind the other on one connection. Every piece between two
 * cuts is a TLS record and a packet of its own, a millisecond after the one before.
 */
async function sendInPieces(requests: readonly Request[], cuts: readonly number[]): Promise<Answer[]> {
  const connection = await RawConnection.open(server);
  const bytes = Buffer.from(requests.map(({ text }) => text).join(''));
  const places = [...new Set(cuts.map((cut) => cut % bytes.length)), bytes.length].sort((a, b) => a - b);
  const isLastClosing = requests.at(-1)?.closes === true;
  const isHeadTooLong = requests[0] === broken['much header'];
  let from = 0;
  for (const to of places) {
    if (to > from) connection.write(bytes.subarray(from, to));
    from = to;
    // Then the library answers and closes: a byte that came behind would be answered by a reset.
    if (isHeadTooLong && from >= headBytesMax)
      await until(() => connection.text !== '' || connection.isClosed);
    else if (places.length > 1) await pause(1);
    // Bytes sent to a connection that is being closed would only tear the answer down with it.
    if (isLastClosing && requests.length === 1 && connection.text !== '') break;
  }
  // An answer of the library's own has no length: it ends with the connection.
  if (isLastClosing) await connection.closed();
  const answers: Answer[] = [];
  for (const { isHead, continues } of requests) {
    if (continues) answers.push(withoutDate(await connection.answer()));
    answers.push(withoutDate(await connection.answer(isHead)));
  }
  expect(connection.text).toBe('');
  expect(connection.isClosed).toBe(isLastClosing);
  connection.destroy();
  return answers;
}

function withoutDate({ status, headers, body }: RawAnswer): Answer {
  return { status, headers: headers.filter(([name]) => name !== 'date'), body };
}

/** All of a request is shorter but the head that is too long: byte by byte that would outlast the library. */
const byteByByteMax = 1_400;

/** Sends it one byte at a time; on a machine that does not get through in the library's time, in pieces twice as long. */
async function sendBytewise(request: Request): Promise<Answer[]> {
  const all = Array.from(Buffer.from(request.text), (_, index) => index);
  for (let places = all.slice(-byteByByteMax); ; places = places.filter((_, index) => index % 2 === 0)) {
    const startMs = performance.now();
    try {
      return await sendInPieces([request], places);
    } catch (error) {
      if (performance.now() - startMs < headMs / 2 || places.length < 2) throw error;
    }
  }
}

it('every kind of request gets the same answer one byte at a time', async () => {
  const statuses = new Set<number | undefined>();
  await Promise.all(
    Object.entries({ ...reads, ...writes, ...closing, ...broken, ...failing }).map(
      async ([name, request]) => {
        const whole = await sendInPieces([request], []);
        statuses.add(whole.at(-1)?.status);
        expect(await sendBytewise(request), name).toEqual(whole);
      },
    ),
  );
  expect([...statuses].sort()).toEqual([200, 201, 400, 401, 404, 409, 415, 431, 505]);
});

const cuts = fc.array(fc.nat(), { maxLength: 12 });

it('any split of any request gets the answer of the whole', async () => {
  const names = Object.keys({ ...reads, ...writes, ...closing, ...broken });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...names), cuts, async (name, places) => {
      expect(await sendInPieces(allOf(name), places)).toEqual(await sendInPieces(allOf(name), []));
    }),
    { numRuns: 150, seed: 1 },
  );
});

// Only where a read is answered at once: across a network each waits, and what comes behind it may find the connection closed.
it.runIf(engine === 'lmdb')(
  'D22: any split of pipelined reads, with a write or a bad request behind them, is answered in order',
  async () => {
    const read = fc.constantFrom(...Object.keys(reads));
    const last = fc.constantFrom(...Object.keys({ ...reads, ...writes, ...closing }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(read, { minLength: 1, maxLength: 4 }),
        last,
        cuts,
        async (first, then, places) => {
          const names = [...first, then];
          const alone: Answer[] = [];
          for (const name of names) alone.push(...(await sendInPieces(allOf(name), [])));
          expect(await sendInPieces(allOf(...names), places)).toEqual(alone);
        },
      ),
      { numRuns: 80, seed: 2 },
    );
  },
);

it('D22: a request behind a write that waits is answered in order, or the connection closes', async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const connection = await RawConnection.open(server);
      connection.write(
        allOf('datapoint', 'size')
          .map(({ text }) => text)
          .join(''),
      );
      const statuses: number[] = [];
      try {
        for (let i = 0; i < 2; i += 1) statuses.push((await connection.answer()).status);
      } catch {
        expect(connection.isClosed).toBe(true);
      }
      connection.destroy();
      return statuses;
    }),
  );
  for (const statuses of outcomes) expect([201, 200].slice(0, statuses.length)).toEqual(statuses);
});

it('the server has noticed nothing', async () => {
  const fleet = await createFleet(server);
  await expectAlive(server, await fleet.createDevice());
});
