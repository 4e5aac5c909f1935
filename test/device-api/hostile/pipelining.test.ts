/** Hostile trial: hundreds of pipelined requests. */

import { beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { RawConnection, requestText } from '../../harness/devices/raw.ts';
import { TestServer } from '../../harness/server/server.ts';
import { expectAlive, until } from '../../harness/server/vitals.ts';

let server: TestServer;
let device: TestDevice;

beforeAll(async () => {
  // The rate limit has a test of its own, so the shared server will do.
  server = await TestServer.shared();
  device = await (await createFleet(server)).createDevice();
});

const request = requestText('GET', '/', {});
const floodBytes = 600_000;
const flood = request.repeat(floodBytes / request.length);
/** More than one turn answers; what a socket holds is parsed in one. */
const answersMax = 1_024;

function answersOn({ text }: RawConnection): number {
  return text.split('HTTP/1.1 200 OK').length - 1;
}

/** Has the clients write while the server stands still, so that it finds all of it at once. */
async function atOnce(write: () => void): Promise<void> {
  server.process.kill('SIGSTOP');
  write();
  // All that fits has left for the kernel by then.
  await new Promise((resolve) => setTimeout(resolve, 300));
  server.process.kill('SIGCONT');
}

it('D22: two hundred requests that are there at once are answered in order on their connection', async () => {
  const connection = await RawConnection.open(server);
  const texts = Array.from({ length: 100 }, (_, index) => [
    requestText('GET', '/', {}),
    requestText('GET', `/nowhere/${index}`, {}),
  ]);
  await atOnce(() => connection.write(texts.flat().join('')));
  for (let i = 0; i < 200; i += 1) {
    expect((await connection.answer()).status).toBe(i % 2 === 0 ? 200 : 404);
  }
  expect(connection.isClosed).toBe(false);
  connection.destroy();
});

it('D22: a connection that pipelines more than a turn answers is closed', async () => {
  const connection = await RawConnection.open(server);
  await atOnce(() => connection.write(flood));
  await until(() => connection.isClosed);
  expect(answersOn(connection)).toBeLessThan(answersMax);
  await expectAlive(server, device);
});

it('40 connections that pipeline 600 KB each are closed, and another device is answered meanwhile', async () => {
  const crowd = await Promise.all(Array.from({ length: 40 }, () => RawConnection.open(server)));
  const other = await RawConnection.open(server);
  await atOnce(() => {
    for (const connection of crowd) connection.write(flood);
    other.write(requestText('POST', '/v1/heartbeat', { ...device.credentials }));
  });
  expect((await other.answer()).status).toBe(201);
  await until(() => crowd.every(({ isClosed }) => isClosed));
  for (const connection of crowd) expect(answersOn(connection)).toBeLessThan(answersMax);
  other.destroy();
  await expectAlive(server, device);
});
