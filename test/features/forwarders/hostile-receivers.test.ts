/** Hostile trial of forwarders by their receivers. */

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { beforeAll, expect, it } from 'vitest';
import { freePort } from '../../../src/device/simulator/run/free-port.ts';
import { createFleet, type TestFleet } from '../../harness/devices/device.ts';
import { TestServer } from '../../harness/server/server.ts';
import { pause } from '../../harness/server/vitals.ts';

let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
});

const info = 'INFO {"server_id":"x","version":"2.10.0","proto":1,"headers":true,"max_payload":1048576}\r\n';
const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
/** Bound on what the library may have read and the kernels on both sides may hold. */
const takenMax = 16 * 1024 * 1024;

interface Ended {
  /** Bytes that left this side before the server ended the connections: one to see whether it is there, and one to test. */
  sent: number;
  test: { status: number; body: { result?: string; reason?: string } };
}

/** Schemes of a receiver's URL. */
const schemes = {
  plain: { nats: 'nats', webhook: 'http' },
  secure: { nats: 'tls', webhook: 'https' },
};

/** Tries a forwarder on a receiver that talks as it likes, until its connection is ended. */
async function tryOn(
  kind: 'nats' | 'webhook',
  talk: (socket: Socket) => Promise<void>,
  security: keyof typeof schemes = 'plain',
): Promise<Ended> {
  await using receiver = createServer().listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const sockets: Socket[] = [];
  receiver.on('connection', (socket: Socket) => {
    sockets.push(socket.on('error', () => {}));
    // It is cut off in the midst of it.
    talk(socket).catch(() => {});
  });
  const { port } = receiver.address() as AddressInfo;
  const path = `/fleets/${fleet.fleetId}/forwarders/hostile-${kind}`;
  const url = `${schemes[security][kind]}://127.0.0.1:${port}`;
  const destination = kind === 'nats' ? { servers: [url], subject: 'a.b' } : { url: `${url}/` };
  const forwarder = { type: kind, enabled: false, timeout_seconds: 2, ...destination };
  expect((await server.admin('PUT', path, forwarder)).status).toBeLessThan(300);
  const test = await server.admin<Ended['test']['body']>('POST', `${path}/test`);
  await Promise.all(sockets.map((socket) => socket.closed || once(socket, 'close')));
  return { sent: sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0), test };
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
  const { sent, test } = await tryOn('nats', talk);
  expect(test.status).toBe(200);
  expect(JSON.stringify(test.body)).toMatch(/NATS/);
  expect(sent).toBeLessThan(takenMax);
  expect((await server.admin('GET', '/self')).status).toBe(200);
});

/** Answers a request with an endless text. */
async function answer(socket: Socket, start: string, text: string): Promise<void> {
  await once(socket.resume().setNoDelay(true), 'data');
  socket.write(start);
  await flood(socket, text);
}

it.each([
  ['early hints without an end', '', 'HTTP/1.1 103 E\r\n\r\n'.repeat(1_000)],
  ['an endless reason', 'HTTP/1.1 200 ', 'a'.repeat(65_536)],
  ['a chunk with an endless extension', `${chunked}1;`, 'a'.repeat(65_536)],
  ['a chunk with an endless size', `${chunked}0`, '0'.repeat(65_536)],
])('a webhook receiver that answers %s is cut off', async (_, start, text) => {
  const { sent, test } = await tryOn('webhook', (socket) => answer(socket, start, text));
  expect(test.status).toBe(200);
  expect(JSON.stringify(test.body)).not.toMatch(/did not answer/);
  expect(sent).toBeLessThan(takenMax);
  expect((await server.admin('GET', '/self')).status).toBe(200);
});

/** TLS suites and groups of key exchange that the first message of a client offers (RFC 8446, 4.1.2). */
function offeredIn(hello: Buffer): { suites: number[]; groups: number[] } {
  const listAt = (at: number): number[] =>
    Array.from({ length: hello.readUInt16BE(at) / 2 }, (_, index) => hello.readUInt16BE(at + 2 + 2 * index));
  // Behind the heads of the record and of the message, its version and its random bytes.
  const suitesAt = 44 + hello.readUInt8(43);
  let at = suitesAt + 2 + hello.readUInt16BE(suitesAt);
  at += 1 + hello.readUInt8(at) + 2;
  const supportedGroups = 10;
  while (hello.readUInt16BE(at) !== supportedGroups) at += 4 + hello.readUInt16BE(at + 2);
  return { suites: listAt(suitesAt), groups: listAt(at + 4) };
}

/** X25519, P-256 and P-384: a handshake of ffdhe8192 takes 100 times as long. */
const quickGroups = [0x1d, 0x17, 0x18];
/** Suites of TLS 1.2 with the ephemeral Diffie-Hellman of any prime that a receiver likes. */
const slowSuites = [
  0x33, 0x39, 0x67, 0x6b, 0x9e, 0x9f, 0xccaa, 0xc09e, 0xc09f, 0xc0a2, 0xc0a3, 0xc052, 0xc053,
];

it.each(['nats', 'webhook'] as const)(
  'a %s receiver cannot choose a key exchange that takes long',
  async (kind) => {
    let hello: Buffer = Buffer.alloc(0);
    await tryOn(
      kind,
      async (socket) => {
        if (kind === 'nats') socket.write(info.replace('{', '{"tls_required":true,'));
        // The first connection only looks whether somebody is there.
        for await (const chunk of socket) {
          hello = chunk as Buffer;
          break;
        }
      },
      'secure',
    );
    const { suites, groups } = offeredIn(hello);
    expect(groups).toEqual(quickGroups);
    expect(suites.filter((suite) => slowSuites.includes(suite))).toEqual([]);
    expect(suites.length).toBeGreaterThan(3);
  },
);

it('a webhook receiver that is not there, or not behind the TLS of its URL, ends no server', async () => {
  const path = `/fleets/${fleet.fleetId}/forwarders/nobody`;
  for (const url of [
    `http://127.0.0.1:${await freePort()}/`,
    server.report.admin_url.replace('http:', 'https:'),
  ]) {
    const forwarder = { type: 'webhook', enabled: false, timeout_seconds: 2, url };
    expect((await server.admin('PUT', path, forwarder)).status).toBeLessThan(300);
    expect((await server.admin('POST', `${path}/test`)).status).toBe(200);
    expect((await server.admin('GET', '/self')).status).toBe(200);
  }
});

it('what a NATS receiver sends stands nowhere in the log', async () => {
  const line = '{"level":50,"msg":"FORGED"}';
  await tryOn('nats', async (socket) => {
    await greet(socket);
    socket.write(`X\n${line}\n`);
  });
  expect(server.stderr).not.toContain('FORGED');
});
