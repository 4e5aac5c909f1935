import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect as connectTcp, type Socket } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import type { TestServer } from '../server/server.ts';

export interface RawAnswer {
  status: number;
  statusLine: string;
  /** Every header line in order, names in lower case. */
  headers: [string, string][];
  body: string;
}

/** A connection on which a test decides every byte, of TLS unless it is one to the admin API. */
export class RawConnection<S extends Socket = TLSSocket> {
  readonly socket: S;
  #received = Buffer.alloc(0);
  #ended = false;

  constructor(socket: S) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
    });
    socket.on('end', () => {
      this.#ended = true;
    });
    socket.on('close', () => {
      this.#ended = true;
    });
    socket.on('error', () => {});
  }

  /** `options`: another local address of loopback, say, or a TLS version. */
  static async open(server: TestServer, options: ConnectionOptions = {}): Promise<RawConnection> {
    const { port, ca } = server;
    const socket = connect({ host: '127.0.0.1', port, ca, servername: 'localhost', ...options });
    await once(socket, 'secureConnect');
    return new RawConnection(socket);
  }

  /** Connects to the admin API, or whatever speaks plain HTTP at that address. */
  static async openPlain(url: string): Promise<RawConnection<Socket>> {
    const { hostname, port } = new URL(url);
    const socket = connectTcp({ host: hostname, port: Number(port) });
    await once(socket, 'connect');
    return new RawConnection(socket);
  }

  get text(): string {
    return this.#received.toString('latin1');
  }

  get isClosed(): boolean {
    return this.#ended;
  }

  write(text: string | Buffer): void {
    this.socket.write(text);
  }

  /** One write a byte, so that the server may see any split. */
  async writeBytewise(text: string): Promise<void> {
    for (const byte of Buffer.from(text, 'latin1')) {
      await new Promise<void>((resolve) => this.socket.write(Buffer.from([byte]), () => resolve()));
    }
  }

  /** Settles once the server, on this machine, has read all that was written. */
  async taken(timeoutMs = 15_000): Promise<void> {
    const endMs = Date.now() + timeoutMs;
    while (this.socket.writableLength > 0 || queuedBytes(this.socket) > 0) {
      if (Date.now() > endMs) throw new Error('the server did not read what was written');
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  /** Takes the next complete response off the connection. `isHead`: it has no body whatever it declares. */
  async answer(isHead = false, timeoutMs = 15_000): Promise<RawAnswer> {
    const endMs = Date.now() + timeoutMs;
    for (;;) {
      const parsed = parse(this.#received, isHead, this.#ended);
      if (parsed !== undefined) {
        this.#received = this.#received.subarray(parsed.length);
        return parsed.answer;
      }
      if (this.#ended) throw new Error(`closed before a complete response: ${JSON.stringify(this.text)}`);
      if (Date.now() > endMs) throw new Error(`no complete response in time: ${JSON.stringify(this.text)}`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  /** Settles once the server has closed the connection. */
  async closed(timeoutMs = 30_000): Promise<void> {
    const endMs = Date.now() + timeoutMs;
    while (!this.#ended) {
      if (Date.now() > endMs) throw new Error('the connection stayed open');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  destroy(): void {
    this.socket.destroy();
  }
}

/** Bytes between the two ends of a connection of IPv4: sent and not received, or received and not read. */
function queuedBytes({ localPort, remotePort }: Socket): number {
  const ends = [localPort, remotePort].map((port = 0) => port.toString(16).toUpperCase().padStart(4, '0'));
  let bytes = 0;
  for (const line of readFileSync('/proc/net/tcp', 'latin1').split('\n').slice(1)) {
    const [, here = '', there = '', , queues = ''] = line.trim().split(/ +/);
    const ports = [here, there].map((address) => address.slice(-4));
    const [unsent, unread] = queues.split(':').map((count) => Number.parseInt(count, 16));
    if (ports.join() === ends.join()) bytes += unsent ?? 0;
    if (ports.join() === ends.toReversed().join()) bytes += unread ?? 0;
  }
  return bytes;
}

function parse(
  bytes: Buffer,
  isHead: boolean,
  ended: boolean,
): { answer: RawAnswer; length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [statusLine = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n');
  const status = Number(statusLine.split(' ')[1]);
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  const bodyAt = headEnd + 4;
  const declared = headers.find(([name]) => name === 'content-length')?.[1];
  const hasNoBody = isHead || status === 204 || status === 100;
  let length = hasNoBody ? 0 : Number(declared ?? (ended ? bytes.length - bodyAt : Number.NaN));
  if (Number.isNaN(length)) length = 0;
  if (bytes.length < bodyAt + length) return undefined;
  const body = bytes.subarray(bodyAt, bodyAt + length).toString('utf8');
  return { answer: { status, statusLine, headers, body }, length: bodyAt + length };
}

/** A request as text. Headers come as given, in order; a Host and the blank line are added. */
export function requestText(
  method: string,
  path: string,
  headers: Record<string, string>,
  body = '',
): string {
  const lines = Object.entries({ Host: 'localhost', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}
