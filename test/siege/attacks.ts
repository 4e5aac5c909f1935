import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext } from 'node:tls';
import { clientHello } from '../device-api/hostile/vanishing.ts';
import type { TestDevice } from '../harness/devices/device.ts';
import { requestText } from '../harness/devices/raw.ts';
import { datapoint, datapointHead, pause } from '../harness/server/vitals.ts';

/** Facts that an attacker knows of a server. */
export interface Target {
  port: number;
  adminPort: number;
  ca: string;
  /** Token of one fleet, for attacks at the admin API. */
  token?: string;
  fleetId?: string;
}

export interface Attack {
  name: string;
  /** Starts the attack, which is under way from when this settles until it is stopped. */
  start(server: Target, device: TestDevice, clients: number): Promise<() => void>;
}

/** Sockets that one attack has open, opened again as the server closes them. */
class Crowd {
  readonly #sockets = new Set<Socket>();
  #stopped = false;

  get isOver(): boolean {
    return this.#stopped;
  }

  add<S extends Socket>(socket: S, again: () => void): S {
    this.#sockets.add(socket);
    socket
      .on('error', () => {})
      .on('close', () => {
        this.#sockets.delete(socket);
        // Not at once: a crowd that is refused would do nothing but connect.
        if (!this.#stopped) setTimeout(() => this.#stopped || again(), 100);
      });
    return socket;
  }

  stop(): void {
    this.#stopped = true;
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** `talk` has a new TLS connection each time. */
async function overTls(
  server: Target,
  clients: number,
  talk: (socket: Socket, crowd: Crowd) => void,
): Promise<() => void> {
  const crowd = new Crowd();
  const secureContext = createSecureContext({ ca: server.ca });
  const open = (): void => {
    const { port } = server;
    const options = { host: '127.0.0.1', port, servername: 'localhost', secureContext };
    const socket = crowd.add(connectTls(options), open);
    socket.once('secureConnect', () => talk(socket, crowd));
  };
  for (let i = 0; i < clients; i += 1) {
    open();
    if (i % 50 === 49) await pause(100);
  }
  return () => crowd.stop();
}

export async function overTcp(
  port: number,
  clients: number,
  talk: (socket: Socket, crowd: Crowd) => void,
): Promise<() => void> {
  const crowd = new Crowd();
  const open = (): void => {
    const socket = crowd.add(connectTcp(port, '127.0.0.1'), open);
    socket.resume().once('connect', () => talk(socket, crowd));
  };
  for (let i = 0; i < clients; i += 1) {
    open();
    if (i % 200 === 199) await pause(50);
  }
  return () => crowd.stop();
}

/** One byte each second, for as long as the server waits. */
function trickle(socket: Socket, bytes: Buffer, crowd: Crowd): void {
  let at = 0;
  const timer = setInterval(() => {
    if (crowd.isOver || socket.destroyed || at >= bytes.length) clearInterval(timer);
    else socket.write(bytes.subarray(at, ++at));
  }, 1_000);
}

/** Sends the request again at each answer, `depth` at a time. */
export function floodWith(request: string, depth = 1) {
  return (socket: Socket): void => {
    const bytes = Buffer.from(request.repeat(depth));
    let rest = 0;
    socket.on('data', (chunk: Buffer) => {
      rest += chunk.toString('latin1').split('HTTP/1.1 ').length - 1;
      while (rest >= depth) {
        rest -= depth;
        socket.write(bytes);
      }
    });
    socket.write(bytes);
  };
}

export const attacks: readonly Attack[] = [
  {
    name: 'idle TCP connections, no handshake',
    start: (server, _, clients) => overTcp(server.port, clients, () => {}),
  },
  {
    name: 'handshakes at a byte a second',
    start: async (server, _, clients) => {
      const hello = await clientHello();
      return overTcp(server.port, clients, (socket, crowd) => trickle(socket, hello, crowd));
    },
  },
  {
    name: 'garbage in place of a handshake',
    start: (server, _, clients) =>
      overTcp(server.port, clients / 10, (socket) => socket.write(Buffer.alloc(2_000, 'x'))),
  },
  {
    name: 'heads at a byte a second',
    start: (server, device, clients) =>
      overTls(server, clients / 4, (socket, crowd) =>
        trickle(socket, Buffer.from(requestText('GET', '/v1', { ...device.credentials })), crowd),
      ),
  },
  {
    name: 'bodies at a byte a second',
    start: (server, device, clients) =>
      overTls(server, clients / 4, (socket, crowd) => {
        socket.resume().write(datapointHead(device, { 'Content-Length': '60000' }));
        trickle(socket, Buffer.alloc(60_000, ' '), crowd);
      }),
  },
  {
    name: '600 KB of pipelined requests without credentials a connection',
    start: (server, _, clients) => {
      const request = requestText('GET', '/', {});
      const flood = Buffer.from(request.repeat(600_000 / request.length));
      return overTls(server, clients / 10, (socket) => socket.resume().write(flood));
    },
  },
  {
    name: 'wrong secrets, 16 connections',
    start: (server, device) => {
      const wrong = { ...device.credentials, 'X-Device-Secret': `FOS-${'X'.repeat(32)}` };
      return overTls(server, 16, floodWith(requestText('POST', '/v1/heartbeat', wrong)));
    },
  },
];

/** Attacks without a token, on the port of the admin API. */
export const adminAttacks: readonly Attack[] = [
  {
    name: 'admin port: metrics asked for 1,000 at a time, and never read',
    start: ({ adminPort }, _, clients) => {
      const flood = Buffer.from('GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.repeat(1_000));
      return overTcp(adminPort, clients / 100, (socket) => socket.pause().write(flood));
    },
  },
  {
    name: 'admin port: bodies at a byte a second',
    start: ({ adminPort }, _, clients) => {
      const head = 'POST /admin/v1/fleets HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60000\r\n\r\n';
      return overTcp(adminPort, clients / 4, (socket, crowd) => {
        socket.write(head);
        trickle(socket, Buffer.alloc(60_000, ' '), crowd);
      });
    },
  },
];

/** Bodies that are never complete: as long as they may be, all but the last byte. */
export const halves: readonly Attack[] = [
  {
    name: 'half-sent bodies of one device',
    start: (server, device, clients) => {
      const half = datapoint(device, `{"a":"${'x'.repeat(65_000)}"}`).slice(0, -1);
      return overTls(server, clients / 2, (socket) => socket.resume().write(half));
    },
  },
  {
    name: 'half-sent claims of nobody',
    start: (server, _, clients) => {
      const headers = { 'Content-Type': 'application/json', 'Content-Length': '4096' };
      const half = requestText('POST', '/v1/claim', headers, ' '.repeat(4_095));
      return overTls(server, clients / 2, (socket) => socket.resume().write(half));
    },
  },
];

const tooDeep = `{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`;

/** One device with its right secret, as fast as it is answered. */
export const floods: readonly Attack[] = [
  {
    name: 'one device, datapoints, 16 connections',
    start: (server, device) => overTls(server, 16, floodWith(datapoint(device, '{"flood":1}'))),
  },
  {
    name: 'one device, bodies nested over 30,000 levels, 16 connections',
    start: (server, device) => overTls(server, 16, floodWith(datapoint(device, tooDeep))),
  },
  {
    name: 'one device, heartbeats, 16 connections, 10 at a time',
    start: (server, device) =>
      overTls(server, 16, floodWith(requestText('POST', '/v1/heartbeat', { ...device.credentials }), 10)),
  },
];
