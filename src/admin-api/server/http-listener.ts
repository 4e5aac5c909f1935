import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { AdminApiConfig } from '../config.ts';

/** Longer than proxies keep a connection that nobody uses, so that it is they who close it. */
const keepAliveTimeoutMs = 72_000;
/** A client that takes nothing of its answer for so long is gone. */
const unreadTimeoutMs = 120_000;
/** What a stream has under way to a client that reads: nothing is won by ending it. */
const fewBytes = 262_144;
/** Time the head of a request may take: some hundred bytes, over loopback or from the proxy in front. */
const headMs = 10_000;
/** Requests that wait behind another on their connection. Clients that pipeline at all are content with fewer. */
const pipelinedMax = 16;
/** How often heads are looked at that arrive slowly. */
const checkIntervalMs = 1_000;
/** Time to read its answer for a client that still sends a body that nobody reads. */
const lingerMs = 2_000;

export type ListenerLimits = Pick<AdminApiConfig, 'adminConnectionsMax' | 'adminUnreadBytesMax'>;

/** A plain HTTP server that strangers cannot make keep more than its limits: connections, waiting requests, unread answers. */
export class HttpListener {
  readonly #server: Server;
  readonly #limits: ListenerLimits;
  readonly #handler: RequestListener;
  readonly #sockets = new Set<Socket>();
  /** Of each connection that has a request under way, those behind it; whose answer was begun first is in front. */
  readonly #waiting = new Map<Socket, [IncomingMessage, ServerResponse][]>();
  /** What the client of each had taken when room was last looked for. */
  readonly #takenBytes = new WeakMap<Socket, number>();

  private constructor(limits: ListenerLimits, handler: RequestListener) {
    this.#limits = limits;
    this.#handler = handler;
    const take: RequestListener = (request, response) => this.#queue(request, response);
    this.#server = createServer({ connectionsCheckingInterval: checkIntervalMs }, take);
    this.#server.headersTimeout = headMs;
    // Bodies have a time by route: an import may be sent for as long as it takes.
    this.#server.requestTimeout = 0;
    this.#server.keepAliveTimeout = keepAliveTimeoutMs;
    this.#server.maxConnections = limits.adminConnectionsMax;
    this.#server.on('connection', (socket) => this.#greet(socket));
    // Whoever reads the body asks for it: nobody does before the token is known.
    this.#server.on('checkContinue', take);
  }

  /** @throws Error when the address cannot be had. */
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

  #greet(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    if (this.#sockets.size >= this.#limits.adminConnectionsMax) this.#server.closeIdleConnections();
    // Node closes at once where an answer is the last one. The reset that a client gets which is still sending would cost
    // it that answer (RFC 9112, 9.6).
    socket.destroySoon = () => {
      if (socket.writableEnded) return;
      socket.end();
      const timer = setTimeout(() => socket.destroy(), lingerMs);
      socket.once('close', () => clearTimeout(timer));
    };
  }

  /**
   * Requests of one connection one after another: the answer to a pipelined one has no socket before its turn comes, and
   * if the connection ends first nothing ever tells whoever works at it. So no connection has more than one unread answer.
   */
  #queue(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    // Of a connection that is being closed nothing is read any more.
    if (socket.writableEnded || socket.destroyed) return;
    const waiting = this.#waiting.get(socket);
    if (waiting === undefined) this.#take(request, response, []);
    else if (waiting.length < pipelinedMax) waiting.push([request, response]);
    // At once, since Node keeps whatever else came in the same piece, hundreds of requests, until the connection ends.
    else socket.destroy();
  }

  #take(
    request: IncomingMessage,
    response: ServerResponse,
    waiting: [IncomingMessage, ServerResponse][],
  ): void {
    const { socket } = request;
    this.#waiting.set(socket, waiting);
    response.once('prefinish', () => this.#makeRoom());
    response.once('close', () => {
      this.#waiting.delete(socket);
      // Answered before its body was there, which nobody wants any more.
      if (!request.complete) socket.destroySoon();
      const next = waiting.shift();
      if (next !== undefined && !socket.writableEnded && !socket.destroyed) this.#take(...next, waiting);
    });
    response.setTimeout(unreadTimeoutMs, () => {
      if (socket.writableLength > 0) socket.destroy();
    });
    this.#handler(request, response);
  }

  /**
   * While answers that nobody reads take too much, the oldest go: first of those whose clients have taken nothing since
   * the last look, for a new one may be read yet.
   */
  #makeRoom(): void {
    let unread = 0;
    const stalled: Socket[] = [];
    const moving: Socket[] = [];
    for (const socket of this.#waiting.keys()) {
      unread += socket.writableLength;
      const takenBytes = socket.bytesWritten - socket.writableLength;
      (this.#takenBytes.get(socket) === takenBytes ? stalled : moving).push(socket);
      this.#takenBytes.set(socket, takenBytes);
    }
    for (const socket of [...stalled, ...moving]) {
      if (unread <= this.#limits.adminUnreadBytesMax) return;
      if (socket.writableLength < fewBytes) continue;
      unread -= socket.writableLength;
      socket.destroy();
    }
  }
}
