import { once } from 'node:events';
import { connect as connectTcp, createServer, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { TestServer } from '../../harness/server/server.ts';

export async function openTcp(server: TestServer): Promise<Socket> {
  const socket = connectTcp(server.port, '127.0.0.1').on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/**
 * A TLS connection over a TCP socket that can be reset under it. Node ends with a segmentation fault when
 * the socket that it handed to TLS is reset, so TLS is given a stream around it.
 */
export async function openTls(server: TestServer): Promise<{ tls: TLSSocket; tcp: Socket }> {
  const tcp = await openTcp(server);
  const around = new Duplex({
    read: () => {
      tcp.resume();
    },
    write: (chunk, _encoding, done) => {
      tcp.write(chunk, () => done());
    },
    final: (done) => {
      tcp.end(() => done());
    },
    destroy: (error, done) => {
      tcp.destroy();
      done(error);
    },
  });
  tcp.on('data', (chunk) => {
    if (!around.push(chunk)) tcp.pause();
  });
  tcp.on('end', () => around.push(null));
  tcp.on('close', () => around.destroy());
  const tls = connectTls({ socket: around, ca: server.ca, servername: 'localhost' }).on('error', () => {});
  await once(tls, 'secureConnect');
  return { tls, tcp };
}

/** The first bytes of a real TLS client, that offers this group of key exchange alone, if one is given. */
export async function clientHello(group?: string): Promise<Buffer> {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as { port: number };
  const options = { port, host: '127.0.0.1', servername: 'localhost', ...(group && { ecdhCurve: group }) };
  const client = connectTls(options).on('error', () => {});
  const [accepted] = (await once(listener, 'connection')) as [Socket];
  const [bytes] = (await once(accepted, 'data')) as [Buffer];
  client.destroy();
  accepted.destroy();
  listener.close();
  return bytes;
}

/** Where floods come from. */
export const floodAddress = '127.0.0.2';

/** Begins handshakes with this group until it is told to end, and leaves each at its first answer. */
export async function floodHandshakes(port: number, group: string, stop: AbortSignal): Promise<void> {
  const hello = await clientHello(group);
  const begin = async (): Promise<void> => {
    while (!stop.aborted) {
      const options = { host: '127.0.0.1', port, localAddress: floodAddress };
      const socket = connectTcp(options).on('error', () => {});
      // A reset is an end like another.
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.once('data', () => socket.resetAndDestroy());
      socket.write(hello);
      await closed;
    }
  };
  await Promise.all(Array.from({ length: 128 }, begin));
}
