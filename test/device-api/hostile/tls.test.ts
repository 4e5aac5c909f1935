/** Hostile trial, D22: handshakes, versions and suites of TLS. */

import { once } from 'node:events';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { beforeAll, describe, expect, it } from 'vitest';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { RawConnection, requestText } from '../../harness/devices/raw.ts';
import { TestServer } from '../../harness/server/server.ts';
import { expectAlive } from '../../harness/server/vitals.ts';
import { clientHello, openTcp } from './vanishing.ts';

let server: TestServer;
let device: TestDevice;

beforeAll(async () => {
  server = await TestServer.shared();
  device = await (await createFleet(server)).createDevice();
});

/** Outcome of the handshake: the version and the cipher suite, or the error. */
async function handshake(options: ConnectionOptions): Promise<string> {
  const { port, ca } = server;
  const socket = connect({ host: '127.0.0.1', port, ca, servername: 'localhost', ...options });
  try {
    await once(socket, 'secureConnect');
    return `${socket.getProtocol()} ${socket.getCipher().name}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  } finally {
    socket.destroy();
  }
}

const tls12 = { maxVersion: 'TLSv1.2' } as const;

describe('D22: TLS 1.2 and 1.3', () => {
  it('with suites that have forward secrecy and authenticated encryption', async () => {
    expect(await handshake({})).toMatch(/^TLSv1\.3 TLS_/);
    for (const suite of [
      'ECDHE-ECDSA-AES128-GCM-SHA256',
      'ECDHE-ECDSA-AES256-GCM-SHA384',
      'ECDHE-ECDSA-CHACHA20-POLY1305',
    ]) {
      expect(await handshake({ ...tls12, ciphers: suite })).toBe(`TLSv1.2 ${suite}`);
    }
  });

  it.each([
    'ECDHE-ECDSA-AES128-SHA',
    'ECDHE-ECDSA-AES256-SHA',
    'ECDHE-ECDSA-AES128-SHA256',
    'ECDHE-ECDSA-AES256-SHA384',
    'ECDHE-RSA-AES128-SHA',
    'AES128-SHA',
    'AES256-SHA256',
    'AES128-GCM-SHA256',
  ])('not with %s, CBC or without forward secrecy', async (suite) => {
    const outcome = await handshake({ ...tls12, ciphers: `${suite}:@SECLEVEL=0` });
    // OpenSSL 3.5, which Node 24 has, says TLS where older ones say SSLV3.
    expect(outcome).toMatch(/^ERR_SSL_.+_ALERT_HANDSHAKE_FAILURE$/);
  });

  it.each(['TLSv1', 'TLSv1.1'] as const)('not %s', async (version) => {
    const old = { minVersion: version, maxVersion: version, ciphers: 'DEFAULT:@SECLEVEL=0' };
    expect(await handshake(old)).toBe('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
  });
});

it('renegotiation is refused, and does nobody harm', async () => {
  const connection = await RawConnection.open(server, tls12);
  const socket: TLSSocket = connection.socket;
  const renegotiated = await new Promise<boolean>((resolve) => {
    socket.renegotiate({}, (error) => resolve(error === null));
    socket.once('close', () => resolve(false));
  });
  expect(renegotiated).toBe(false);
  connection.destroy();
  await expectAlive(server, device);
});

/** The first message again, its server name grown to so many bytes, in as many records as that takes. */
async function helloWithServerName(bytes: number): Promise<Buffer> {
  const hello = (await clientHello()).subarray(5);
  const name = Buffer.alloc(bytes, 'a');
  const at = hello.indexOf('localhost') - 9;
  const grow = bytes - 'localhost'.length;
  const grown = Buffer.concat([hello.subarray(0, at + 9), name, hello.subarray(at + 18)]);
  // Lengths of the message, of all extensions, of this one, of its list and of its name.
  grown.writeUIntBE(hello.readUIntBE(1, 3) + grow, 1, 3);
  const sessionBytes = hello.readUInt8(38);
  const suitesBytes = hello.readUInt16BE(39 + sessionBytes);
  const extensionsAt = 39 + sessionBytes + 2 + suitesBytes + 2;
  for (const length of [extensionsAt, at + 2, at + 4, at + 7]) {
    grown.writeUInt16BE(Math.min(hello.readUInt16BE(length) + grow, 65_535), length);
  }
  const records: Buffer[] = [];
  for (let start = 0; start < grown.length; start += 16_384) {
    const part = grown.subarray(start, start + 16_384);
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
  }
  return Buffer.concat(records);
}

it.each([255, 256, 5_000, 16_000, 60_000])(
  'a server name of %i bytes ends at most its connection',
  async (bytes) => {
    const tcp = await openTcp(server);
    tcp.write(await helloWithServerName(bytes));
    const [first] = await Promise.race([once(tcp, 'data'), once(tcp, 'close').then(() => ['closed'])]);
    expect(first).toBeDefined();
    tcp.destroy();
    await expectAlive(server, device);
  },
);

it('a handshake that comes byte by byte is completed', async () => {
  const tcp = await openTcp(server);
  for (const byte of await clientHello()) {
    await new Promise<void>((resolve) => tcp.write(Buffer.from([byte]), () => resolve()));
  }
  const [answer] = (await once(tcp, 'data')) as [Buffer];
  // A record of the handshake, not an alert.
  expect(answer[0]).toBe(22);
  tcp.destroy();
  const connection = await RawConnection.open(server);
  connection.write(requestText('GET', '/v1', { ...device.credentials }));
  expect((await connection.answer()).status).toBe(200);
  connection.destroy();
});
