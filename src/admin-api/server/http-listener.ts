import { readFileSync } from 'node:fs';
import {
  createServer,
  IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { parseClientAddress } from '../../core/address.ts';
import { arrivals } from '../../core/async.ts';
import { type TlsFiles, tlsCiphers, tlsGroups } from '../../core/config/tls.ts';
import { groupBy } from '../../core/groups.ts';
import type { ConnectionRate } from '../../core/limits/connection-rate.ts';
import type { AdminApiConfig } from '../config.ts';

/** Longer than the idle timeout of proxies, so that they close the connection and not the server. */
const keepAliveTimeoutMs = 72_000;
/** Time after which a client that reads nothing of its answer is cut off. */
const unreadTimeoutMs = 120_000;
/** Buffered bytes that are normal for a client that reads: ending its answer would free little. */
const fewBytes = 262_144;
/** Timeout for the head of a request, which has some hundred bytes, and for the TLS handshake before. */
const headMs = 10_000;
/** Connections that Node lets in beyond the limit, so that an earlier one can make room. */
const arrivingMax = 64;
/** Maximum pipelined requests per connection. Clients that pipeline at all use fewer. */
const pipelinedMax = 16;
/** Listeners for one event of an answer. */
const listenersMax = 20;
/** Interval of checks for slow heads. */
const checkIntervalMs = 1_000;
/** Time for a client to read its answer while it still sends a body that is not read. */
const lingerMs = 2_000;
/** Bytes of that body that are read: what most clients have sent before they look for an answer. */
const lingerBytesMax = 65_536;
/** Pieces that any body may come in: its chunks, as the parser hands them on one by one, each some microseconds. */
const bodyPiecesMax = 4_096;
/** Mean bytes of those beyond. The shortest line of a list of devices has more. */
const bodyPieceBytesMin = 8;

export type ListenerLimits = Pick<AdminApiConfig, 'adminConnectionsMax' | 'adminUnreadBytesMax'>;

/** Node offers TLS 1.3 only if a list of suites names those of it, too. */
const ciphers = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  ...tlsCiphers,
].join(':');

/** An address to listen on: in HTTPS with the certificate, else in plain HTTP. */
export interface ListenAddress {
  host: string;
  port: number;
  tls?: TlsFiles | undefined;
}

/** A request whose connection ends when its body comes in too many small pieces: Node reads 64 KiB of them at once. */
class BoundedRequest extends IncomingMessage {
  #pieces = 0;
  #bytes = 0;

  override push(piece: Buffer | null, encoding?: BufferEncoding): boolean {
    if (piece !== null) {
      this.#pieces += 1;
      this.#bytes += piece.length;
      if (this.#pieces > bodyPiecesMax + this.#bytes / bodyPieceBytesMin) {
        this.socket.destroy();
        return false;
      }
    }
    return super.push(piece, encoding);
  }
}

/** An HTTP or HTTPS server that bounds what clients can make it hold: connections, pipelined requests, unread answers. */
export class HttpListener {
  readonly #server: Server | SecureServer;
  readonly #limits: ListenerLimits;
  readonly #handler: RequestListener;
  readonly #rate: ConnectionRate | undefined;
  readonly #sockets = new Set<Socket>();
  /** Pipelined requests of each connection that has one in flight, in the order of their answers' start. */
  readonly #pipelined = new Map<Socket, [IncomingMessage, ServerResponse][]>();
  /** Bytes that each client had read at the last eviction. */
  readonly #readBytes = new WeakMap<Socket, number>();

  private constructor(
    tls: TlsFiles | undefined,
    limits: ListenerLimits,
    handler: RequestListener,
    rate: ConnectionRate | undefined,
  ) {
    this.#limits = limits;
    this.#handler = handler;
    this.#rate = rate;
    const onRequest: RequestListener = (request, response) => this.#queue(request, response);
    const options = { connectionsCheckingInterval: checkIntervalMs, IncomingMessage: BoundedRequest };
    this.#server =
      tls === undefined
        ? createServer(options, onRequest)
        : createSecureServer({ ...options, ...secureContext(tls), handshakeTimeout: headMs }, onRequest);
    this.#server.headersTimeout = headMs;
    // Bodies have a timeout by route: an import may take any time.
    this.#server.requestTimeout = 0;
    this.#server.keepAliveTimeout = keepAliveTimeoutMs;
    this.#server.maxConnections = limits.adminConnectionsMax + arrivingMax;
    this.#server.on('connection', (socket: Socket) => this.#onConnection(socket));
    this.#server.on(tls === undefined ? 'connection' : 'secureConnection', lingerAtEnd);
    // 100 Continue is sent where the body is read: not before the token is checked.
    this.#server.on('checkContinue', onRequest);
  }

  /** `rate` bounds handshakes. @throws Error when it cannot listen on the address. */
  static async open(
    { host, port, tls }: ListenAddress,
    limits: ListenerLimits,
    handler: RequestListener,
    rate?: ConnectionRate,
  ): Promise<HttpListener> {
    const listener = new HttpListener(tls, limits, handler, rate);
    const server = listener.#server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen({ host, port }, () => resolve());
    });
    return listener;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the listener is closed');
    return address.port;
  }

  /** Uses the certificate for new connections; open ones live on. */
  renewCertificate(tls: TlsFiles): void {
    if (!('setSecureContext' in this.#server)) throw new Error('the listener speaks plain HTTP');
    this.#server.setSecureContext(secureContext(tls));
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    // Also those still in their handshake, which the server does not count among its connections.
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #onConnection(socket: Socket): void {
    arrivals.note();
    if (this.#rate?.isExceeded(() => parseClientAddress(socket.remoteAddress ?? '') ?? '')) {
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    if (this.#sockets.size >= this.#limits.adminConnectionsMax) this.#server.closeIdleConnections();
    if (this.#sockets.size > this.#limits.adminConnectionsMax) this.#makeRoom(socket);
  }

  /**
   * Closes the oldest connection that has no request to answer, of the address with most of them: a head that comes byte
   * by byte holds its place no longer than others need it. If all have one, the arriving connection is closed.
   */
  #makeRoom(arriving: Socket): void {
    const answering = new Set([...this.#pipelined.keys()].map(peerOf));
    const waiting = [...this.#sockets].filter(
      (socket) => socket !== arriving && !answering.has(peerOf(socket)),
    );
    const byAddress = [...groupBy(waiting, ({ remoteAddress }) => remoteAddress).values()];
    const [most] = byAddress.sort((one, other) => other.length - one.length);
    const oldest = most?.[0] ?? arriving;
    this.#sockets.delete(oldest);
    oldest.destroy();
  }

  /**
   * Handles the requests of a connection one at a time: the answer to a pipelined request has no socket before its turn,
   * and if the connection ends first, its handler is never notified. So a connection has at most one unread answer.
   */
  #queue(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    // Ignores further requests of a connection that is being closed.
    if (socket.writableEnded || socket.destroyed) return;
    const pipelined = this.#pipelined.get(socket);
    if (pipelined === undefined) this.#handle(request, response, []);
    else if (pipelined.length < pipelinedMax) pipelined.push([request, response]);
    // At once, since Node keeps the rest of the same chunk, hundreds of requests, until the connection ends.
    else socket.destroy();
  }

  #handle(
    request: IncomingMessage,
    response: ServerResponse,
    pipelined: [IncomingMessage, ServerResponse][],
  ): void {
    const { socket } = request;
    this.#pipelined.set(socket, pipelined);
    // Each part that follows a streamed answer listens for its end: one or two more than Node takes for a leak.
    response.setMaxListeners(listenersMax);
    response.once('prefinish', () => {
      // Most answers go out at once and take no memory: they cost no look at all connections.
      if (socket.writableLength > 0) this.#evict();
    });
    response.once('close', () => {
      this.#pipelined.delete(socket);
      // Answered before its body was complete, which is not needed any more.
      if (!request.complete) socket.destroySoon();
      const next = pipelined.shift();
      if (next !== undefined && !socket.writableEnded && !socket.destroyed) this.#handle(...next, pipelined);
    });
    response.setTimeout(unreadTimeoutMs, () => {
      if (socket.writableLength > 0) socket.destroy();
    });
    // Set on every answer, also of those that no route gives: nothing here is for a browser to guess about, and nothing
    // but the console's files, which say so, for anybody to keep: some have a secret that is shown once.
    response.setHeader('X-Content-Type-Options', 'nosniff');
    response.setHeader('Cache-Control', 'no-store');
    this.#handler(request, response);
  }

  /**
   * Cuts off the oldest answers while unread ones take too much memory: first those whose clients have read nothing
   * since the last time, because a new one may still be read.
   */
  #evict(): void {
    let unread = 0;
    const stalled: Socket[] = [];
    const moving: Socket[] = [];
    for (const socket of this.#pipelined.keys()) {
      unread += socket.writableLength;
      const readBytes = socket.bytesWritten - socket.writableLength;
      (this.#readBytes.get(socket) === readBytes ? stalled : moving).push(socket);
      this.#readBytes.set(socket, readBytes);
    }
    for (const socket of [...stalled, ...moving]) {
      if (unread <= this.#limits.adminUnreadBytesMax) return;
      if (socket.writableLength < fewBytes) continue;
      unread -= socket.writableLength;
      socket.destroy();
    }
  }
}

/** Names a client's end of a connection, which a TLS socket has in common with the one below it. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function secureContext({ certFile, keyFile }: TlsFiles): SecureContextOptions {
  return {
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
    ciphers,
    // Node's own are slow ones too: one message of a stranger could cost this thread a tenth of a second.
    ecdhCurve: tlsGroups,
    minVersion: 'TLSv1.2',
  };
}

/**
 * After a last answer Node would close at once, and a client that is still sending would get a reset and lose that answer
 * (RFC 9112, 9.6). What it sends is not parsed any more, and only some of it is read: the rest waits in the kernel.
 */
function lingerAtEnd(socket: Socket): void {
  socket.destroySoon = () => {
    if (socket.writableEnded) return;
    socket.end();
    const timer = setTimeout(() => socket.destroy(), lingerMs);
    socket.once('close', () => clearTimeout(timer));
    let bytes = 0;
    // Node takes its parser off the socket when another listens.
    socket.removeAllListeners('data').on('data', (piece: Buffer) => {
      bytes += piece.length;
      if (bytes > lingerBytesMax) socket.pause();
    });
    socket.resume();
  };
}
