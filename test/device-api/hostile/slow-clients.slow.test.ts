/** Hostile trial, D22: clients that send and read slowly. */

import { connect as connectTcp } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { RawConnection, requestText } from '../../harness/devices/raw.ts';
import { TestServer } from '../../harness/server/server.ts';
import { datapointHead, errorOf, expectAlive, pause } from '../../harness/server/vitals.ts';
import { readRecords } from '../../harness/storage/log.ts';

/** The library cuts a connection on which nothing happens after a nominal 10 s, seen as 8 to 12. */
const idleMsMax = 16_000;
const bodyTimeoutSeconds = 2;

/** Gives a body its default of a minute. */
let patient: TestServer;
let hasty: TestServer;
let slowDevice: TestDevice;
let device: TestDevice;
const accepted: string[] = [];

beforeAll(async () => {
  [patient, hasty] = await Promise.all([TestServer.start(), TestServer.start({ bodyTimeoutSeconds })]);
  slowDevice = await (await createFleet(patient)).createDevice();
  device = await (await createFleet(hasty)).createDevice();
});

afterAll(() => Promise.all([patient[Symbol.asyncDispose](), hasty[Symbol.asyncDispose]()]));

const chunked = { 'Transfer-Encoding': 'chunked' };

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

/** Sends a head and then the pieces, spread over the time given; answers the status. */
async function trickle(head: string, pieces: readonly string[], seconds: number): Promise<number> {
  const connection = await RawConnection.open(patient);
  connection.write(head);
  for (const piece of pieces) {
    await pause((seconds * 1_000) / pieces.length);
    connection.write(piece);
  }
  const { status } = await connection.answer();
  connection.destroy();
  return status;
}

function textOf(length: number): string {
  const text = `{"a":"${'x'.repeat(length - 8)}"}`;
  accepted.push(text);
  return text;
}

/** Sends and then keeps silent: what the server says before it closes, and when. */
async function silence(text: string): Promise<{ status: number; error: string; seconds: number }> {
  const connection = await RawConnection.open(hasty);
  const startMs = performance.now();
  connection.write(text);
  const answer = await connection.answer();
  const seconds = (performance.now() - startMs) / 1_000;
  await connection.closed(1_000);
  return { status: answer.status, error: errorOf(answer), seconds };
}

describe.concurrent('slow clients', () => {
  it('D22: a body that trickles at a few bytes a second, or at 1 KB/s, is taken', async () => {
    const declared = { 'Content-Length': '40' };
    const message = datapointHead(slowDevice, declared).replace('datapoint/reading', 'msg/note');
    const kilobytes = textOf(13 * 1_024);
    const statuses = await Promise.all([
      trickle(datapointHead(slowDevice, declared), [...textOf(40)], 13),
      trickle(message, [...textOf(40)], 13),
      trickle(datapointHead(slowDevice, chunked), [...[...textOf(40)].map(chunk), '0\r\n\r\n'], 13),
      trickle(datapointHead(slowDevice, chunked), [...`${chunk(textOf(30))}0\r\n\r\n`], 13),
      trickle(
        datapointHead(slowDevice, { 'Content-Length': String(kilobytes.length) }),
        kilobytes.match(/.{1,64}/g) ?? [],
        13,
      ),
    ]);
    expect(statuses).toEqual([201, 201, 201, 201, 201]);
  });

  it('D22: a body that pauses for longer than the idle timer of the library is taken', async () => {
    const declared = datapointHead(slowDevice, { 'Content-Length': '20' });
    const undeclared = datapointHead(slowDevice, chunked);
    const text = textOf(20);
    const statuses = await Promise.all([
      trickle(declared + text.slice(0, 9), [text.slice(9)], 13),
      trickle(declared, [textOf(20)], 13),
      trickle(undeclared, [`${chunk(textOf(20))}0\r\n\r\n`], 13),
      trickle(undeclared + chunk(textOf(20)), ['0\r\n\r\n'], 13),
    ]);
    expect(statuses).toEqual([201, 201, 201, 201]);
  });

  it('a body that stops is answered 400 after bodyTimeoutSeconds, and its connection is closed', async () => {
    const declared = { 'Content-Length': '10' };
    const heartbeat = requestText('POST', '/v1/heartbeat', { ...device.credentials, ...declared });
    const endings = await Promise.all([
      silence(datapointHead(device, declared)),
      silence(`${datapointHead(device, declared)}{"a`),
      silence(datapointHead(device, chunked)),
      silence(`${datapointHead(device, chunked)}5`),
      silence(`${datapointHead(device, chunked)}5\r\n{"a`),
      silence(`${datapointHead(device, chunked)}${chunk('{"a":1}')}`),
      silence(`${datapointHead(device, { 'Content-Length': '65537' })}${'x'.repeat(65_536)}`),
      silence(`${heartbeat}abc`),
    ]);
    for (const { status, error, seconds } of endings) {
      expect([status, error]).toEqual([400, 'bad_request']);
      expect(seconds).toBeGreaterThan(bodyTimeoutSeconds - 0.1);
      expect(seconds).toBeLessThan(bodyTimeoutSeconds + 4);
    }
  });

  it('Expect: 100-continue gets its 100 at once (D22)', async () => {
    const connection = await RawConnection.open(patient);
    const startMs = performance.now();
    const text = textOf(40);
    connection.write(datapointHead(slowDevice, { 'Content-Length': '40', Expect: '100-continue' }));
    expect((await connection.answer()).status).toBe(100);
    expect(performance.now() - startMs).toBeLessThan(10_000);
    connection.write(text);
    expect((await connection.answer()).status).toBe(201);
    connection.destroy();
  });

  it('who never finishes a handshake or a head is cut, and so is who has nothing more to say', async () => {
    const tcp = async (bytes: number[]): Promise<void> => {
      const socket = connectTcp(patient.port, '127.0.0.1')
        .on('error', () => {})
        .resume();
      socket.write(Buffer.from(bytes));
      await new Promise<void>((resolve) => socket.once('close', () => resolve()));
    };
    const tls = async (text: string, msPerByte = 0): Promise<void> => {
      const connection = await RawConnection.open(patient);
      if (msPerByte === 0) connection.write(text);
      else {
        for (const byte of text) {
          if (connection.isClosed) break;
          connection.write(byte);
          await pause(msPerByte);
        }
      }
      await connection.closed();
      connection.destroy();
    };
    const head = requestText('POST', '/v1/heartbeat', { ...slowDevice.credentials });
    const startMs = performance.now();
    await Promise.all([
      tcp([]),
      tcp([22, 3, 1, 2, 0, 1]),
      tls(''),
      tls(head.slice(0, -2)),
      tls(head),
      tls(head, 300),
    ]);
    expect(performance.now() - startMs).toBeLessThan(idleMsMax);
  });
});

it('what was accepted is stored, and nothing else', async () => {
  await expectAlive(patient, slowDevice);
  await expectAlive(hasty, device);
  expect(await Promise.all([patient.stop(), hasty.stop()])).toEqual([0, 0]);
  expect((await readRecords(patient.report)).map(({ payload }) => payload).sort()).toEqual(accepted.sort());
  expect(await readRecords(hasty.report)).toEqual([]);
});
