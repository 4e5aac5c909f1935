/** Hostile trial: more connections, open at once or in a second, and more open files than there may be. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { RawConnection, requestText } from '../../harness/devices/raw.ts';
import { shards, TestServer } from '../../harness/server/server.ts';
import { metric, pause, until } from '../../harness/server/vitals.ts';
import { floodAddress, floodHandshakes } from './vanishing.ts';

/** A TCP connection that says nothing, and whether the server has closed it. */
interface Silent {
  socket: Socket;
  isClosed: boolean;
}

async function openSilent(server: TestServer, localAddress = '127.0.0.1'): Promise<Silent> {
  const socket = connect({ host: '127.0.0.1', port: server.port, localAddress });
  const silent = { socket, isClosed: false };
  socket
    .on('error', () => {})
    .on('close', () => {
      silent.isClosed = true;
    });
  socket.resume();
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  return silent;
}

function openMany(server: TestServer, count: number, localAddress?: string): Promise<Silent[]> {
  return Promise.all(Array.from({ length: count }, () => openSilent(server, localAddress)));
}

async function beat(connection: RawConnection, device: TestDevice): Promise<number> {
  connection.write(requestText('POST', '/v1/heartbeat', { ...device.credentials }));
  return (await connection.answer()).status;
}

/** Tells whether a new connection from there is served: one that is refused is closed before its handshake. */
async function isServed(
  server: TestServer,
  device: TestDevice,
  localAddress = '127.0.0.1',
): Promise<boolean> {
  try {
    const options = { localAddress, rejectUnauthorized: true } as object;
    const connection = await RawConnection.open(server, options);
    const status = await beat(connection, device);
    connection.destroy();
    return status === 201;
  } catch {
    return false;
  }
}

async function openConnections(server: TestServer): Promise<number> {
  return (await metric(server, 'fleetpost_connections_open'))[0] ?? -1;
}

/** Connections refused so far: in total, of an address, of an address in a second. */
function refused(server: TestServer): Promise<number[]> {
  return metric(server, 'fleetpost_connections_refused_total');
}

const max = 40;

it('one connection more than connectionsMax is closed at once, and those that are open go on', async () => {
  await using server = await TestServer.start({ connectionsMax: max });
  const device = await (await createFleet(server)).createDevice();
  const open = await RawConnection.open(server);
  const silent = await openMany(server, 3 * max);
  await until(() => silent.filter(({ isClosed }) => !isClosed).length < max);
  expect(silent.filter(({ isClosed }) => isClosed).length).toBe(2 * max + 1);
  expect([await isServed(server, device), await beat(open, device)]).toEqual([false, 201]);
  expect(await openConnections(server)).toBe(max);
  expect(await refused(server)).toEqual([2 * max + 2, 0, 0]);
  for (const { socket } of silent) socket.destroy();
  await until(() => isServed(server, device));
  open.destroy();
  await until(async () => (await openConnections(server)) === 0);
  expect([server.isRunning, server.stderr]).toEqual([true, '']);
});

it('an address with connectionsPerAddressMax open gets no more, every other one does', async () => {
  await using server = await TestServer.start({ connectionsPerAddressMax: max });
  const device = await (await createFleet(server)).createDevice();
  const silent = await openMany(server, max, '127.0.0.2');
  // They are counted once a second.
  await until(async () => !(await isServed(server, device, '127.0.0.2')));
  expect(await isServed(server, device, '127.0.0.3')).toBe(true);
  expect(silent.every(({ isClosed }) => !isClosed)).toBe(true);
  for (const { socket } of silent) socket.destroy();
  await until(() => isServed(server, device, '127.0.0.2'));
});

it('an address that keeps workers busy with handshakes gets few more, every other one is served', async () => {
  const perSecond = 10;
  await using server = await TestServer.start({ connectionsPerSecondPerAddressMax: perSecond });
  const device = await (await createFleet(server)).createDevice();
  const ended = new AbortController();
  // Of the groups that the server takes part in the one that costs it most.
  const flooding = floodHandshakes(server.port, 'P-384', ended.signal);
  await until(async () => ((await refused(server))[2] ?? 0) > 20 * perSecond);
  expect(await isServed(server, device, '127.0.0.3')).toBe(true);
  ended.abort();
  await flooding;
  // Each worker names the address once, however many of its connections it refuses.
  const lines = server.stderr.split('\n').filter((line) => line.includes('address over its rate'));
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.length).toBeLessThanOrEqual(shards);
  for (const line of lines)
    expect(JSON.parse(line)).toMatchObject({
      address: floodAddress,
      limit: 'connectionsPerSecondPerAddressMax',
    });
  await until(() => isServed(server, device, floodAddress));
});

it('with few open files the server serves whom it has, refuses the rest, and recovers at once', async () => {
  const filesMax = 450;
  await using server = await TestServer.start({}, undefined, { openFilesMax: filesMax });
  const device = await (await createFleet(server)).createDevice();
  const open = await RawConnection.open(server);
  const crowd: Silent[] = [];
  for (let wave = 0; wave < 8; wave += 1) {
    crowd.push(...(await openMany(server, filesMax)));
    expect(await beat(open, device)).toBe(201);
    expect((await device.sendMail()).status).toBe(201);
    await pause(5);
  }
  await until(async () => (await refused(server))[0] !== 0);
  expect(crowd.filter(({ isClosed }) => !isClosed).length).toBeLessThan(filesMax);
  for (const { socket } of crowd) socket.destroy();
  await until(() => isServed(server, device));
  expect(await beat(open, device)).toBe(201);
  open.destroy();
  expect([server.isRunning, server.stderr]).toEqual([true, '']);
});
