import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { AdminApiConfig } from '../config.ts';

/** Longer than the idle timeout of proxies, so that they close the connection and not the server. */
const keepAliveTimeoutMs = 72_000;
/** Time after which a client that reads nothing of its answer is cut off. */
const unreadTimeoutMs = 120_000;
/** Buffered bytes that are normal for a client that reads: ending its answer would free little. */
const fewBytes = 262_144;
/** Timeout for the head of a request: some hundred bytes, over loopback or from the proxy in front. */
const headMs = 10_000;
/** Maximum pipelined requests per connection. Clients that pipeline at all use fewer. */
const pipelinedMax = 16;
/** Interval of checks for slow heads. */
const checkIntervalMs = 1_000;
/** Time for a client to read its answer while it still sends a body that is not read. */
const lingerMs = 2_000;

export type ListenerLimits = Pick<AdminApiConfig, 'adminConnectionsMax' | 'adminUnreadBytesMax'>;

/** A plain HTTP server that bounds what clients can make it hold: connections, pipelined requests, unread answers. */
export class HttpListener {
  readonly #server: Server;
  readonly #limits: ListenerLimits;
  readonly #handler: RequestListener;
  readonly #sockets = new Set<Socket>();
  /** Pipelined requests of each connection that has one in flight, in the order of their answers' start. */
  readonly #pipelined = new Map<Socket, [IncomingMessage, ServerResponse][]>();
  /** Bytes that each client had read at the last eviction. */
  readonly #readBytes = new WeakMap<Socket, number>();

  private constructor(limits: ListenerLimits, handler: RequestListener) {
    this.#limits = limits;
    this.#handler = handler;
    const onRequest: RequestListener = (request, response) => this.#queue(request, response);
    this.#server = createServer({ connectionsCheckingInterval: checkIntervalMs }, onRequest);
    this.#server.headersTimeout = headMs;
    // Bodies have a timeout by route: an import may take any time.
    this.#server.requestTimeout = 0;
    this.#server.keepAliveTimeout = keepAliveTimeoutMs;
    this.#server.maxConnections = limits.adminConnectionsMax;
    this.#server.on('connection', (socket) => this.#onConnection(socket));
    // 100 Continue is sent where the body is read: not before the token is checked.
    this.#server.on('checkContinue', onRequest);
  }

  /** @throws Error when it cannot listen on the address. */
  static async open(
    address: { host: string; port: number },
    limits: ListenerLimits,
    handler: RequestListener,
  ): Promise<HttpListener> {
    const listener = new HttpListener(limits, handler);
    const server = listener.#server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(address, () => resolve());
    });
    return listener;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the listener is closed');
    return address.port;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  #onConnection(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    if (this.#sockets.size >= this.#limits.adminConnectionsMax) this.#server.closeIdleConnections();
    // Lingers: after a last answer Node would close at once, and a client that is still sending would get a reset and
    // lose that answer (RFC 9112, 9.6).
    socket.destroySoon = () => {
      if (socket.writableEnded) return;
      socket.end();
      const timer = setTimeout(() => socket.destroy(), lingerMs);
      socket.once('close', () => clearTimeout(timer));
    };
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
    response.once('prefinish', () => this.#evict());
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
