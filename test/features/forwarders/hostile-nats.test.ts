import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { beforeAll, expect, it } from 'vitest';
import { createFleet, type TestFleet } from '../../harness/device.ts';
import { TestServer } from '../../harness/server.ts';
import { pause } from '../../harness/vitals.ts';

let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
});

const info = 'INFO {"server_id":"x","version":"2.10.0","proto":1,"headers":true,"max_payload":1048576}\r\n';
/** Bound on what the library may have read and the kernels on both sides may hold. */
const takenMax = 16 * 1024 * 1024;

interface Ended {
  /** Bytes that left this side before the server ended the connection. */
  sent: number;
  test: { status: number; body: { result?: string; reason?: string } };
}

/** Tries a forwarder on a receiver that talks as it likes, until its connection is ended. */
async function tryOn(talk: (socket: Socket) => Promise<void>): Promise<Ended> {
  await using receiver = createServer().listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const ended = new Promise<number>((resolve) => {
    receiver.once('connection', (socket: Socket) => {
      socket.on('error', () => {}).on('close', () => resolve(socket.bytesWritten));
      // It is cut off in the midst of it.
      talk(socket).catch(() => {});
    });
  });
  const { port } = receiver.address() as AddressInfo;
  const path = `/fleets/${fleet.fleetId}/forwarders/hostile`;
  const forwarder = { type: 'nats', enabled: false, servers: [`nats://127.0.0.1:${port}`], subject: 'a.b' };
  expect((await server.admin('PUT', path, { ...forwarder, timeout_seconds: 1 })).status).toBeLessThan(300);
  const test = await server.admin<Ended['test']['body']>('POST', `${path}/test`);
  return { sent: await ended, test };
}

/** Writes the text again and again, as fast as it is read. */
async function flood(socket: Socket, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  while (!socket.destroyed) {
    if (!socket.write(bytes))
      await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {});
    await pause(0);
  }
}

/** Introduces itself and answers the first PING, as a server of NATS does. */
async function greet(socket: Socket): Promise<void> {
  socket.write(info);
  for (let heard = ''; !heard.includes('PING'); ) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    heard += chunk.toString('latin1');
  }
  socket.write('PONG\r\n');
  socket.resume();
}

it.each([
  ['an endless INFO', async (socket: Socket) => flood(socket, `INFO {"x":"${'a'.repeat(4_096)}`)],
  [
    'an endless INFO in small pieces',
    async (socket: Socket) => {
      socket.setNoDelay(true).write('INFO {"x":"');
      while (!socket.destroyed) {
        socket.write('aaaaaaaa');
        await pause(1);
      }
    },
  ],
  [
    'PING after PING',
    async (socket: Socket) => greet(socket).then(() => flood(socket, 'PING\r\n'.repeat(1_000))),
  ],
  [
    'one message without an end',
    async (socket: Socket) => {
      await greet(socket);
      socket.write('MSG x 1 2000000000\r\n');
      await flood(socket, 'a'.repeat(65_536));
    },
  ],
])('a NATS receiver that sends %s is cut off, and told of in a sentence', async (_, talk) => {
  const { sent, test } = await tryOn(talk);
  expect(test.status).toBe(200);
  expect(JSON.stringify(test.body)).toMatch(/NATS/);
  expect(sent).toBeLessThan(takenMax);
  expect((await server.admin('GET', '/self')).status).toBe(200);
});

it('what a NATS receiver sends stands nowhere in the log', async () => {
  const line = '{"level":50,"msg":"FORGED"}';
  await tryOn(async (socket) => {
    await greet(socket);
    socket.write(`X\n${line}\n`);
  });
  expect(server.stderr).not.toContain('FORGED');
});
