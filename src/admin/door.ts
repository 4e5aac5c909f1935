import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { type NotReady, readyAnswer } from './readiness.ts';

/** Time that requests under way have when the admin server closes. */
const closeTimeoutMs = 2_000;
/** Longer than proxies keep a connection that nobody uses, so that it is they who close it. */
const keepAliveTimeoutMs = 72_000;

/**
 * The admin address, held from the beginning of a start to the very end: `/healthz` and `/readyz` are answered
 * also while data moves for minutes and no route of the admin API is there yet, and while requests end.
 */
export class AdminDoor {
  readonly #server: Server;
  readonly #reasons: () => readonly NotReady[];
  readonly #underWay = new Set<ServerResponse>();
  /** What each connection was asked last and has not been answered yet. */
  readonly #last = new WeakMap<Socket, ServerResponse>();
  #handler: RequestListener | undefined;

  private constructor(reasons: () => readonly NotReady[]) {
    this.#reasons = reasons;
    this.#server = createServer((request, response) => this.#queue(request, response));
    this.#server.keepAliveTimeout = keepAliveTimeoutMs;
    // An import may be sent for as long as it takes.
    this.#server.requestTimeout = 0;
  }

  /** @throws Error when the address cannot be had. */
  static async open(
    address: { host: string; port: number },
    reasons: () => readonly NotReady[],
  ): Promise<AdminDoor> {
    const door = new AdminDoor(reasons);
    const server = door.#server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(address, () => resolve());
    });
    return door;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the door is closed');
    return address.port;
  }

  /** From now on every request goes to the admin server. */
  admit(handler: RequestListener): void {
    this.#handler = handler;
  }

  /** No request goes there any more; settles when those under way have ended, or were ended. */
  async dismiss(): Promise<void> {
    this.#handler = undefined;
    const responses = [...this.#underWay];
    const ended = Promise.all(
      responses.map((response) => new Promise((resolve) => response.once('close', resolve))),
    );
    // A client that neither reads nor leaves must not hold up the end of the server.
    const timer = setTimeout(() => {
      for (const { socket } of responses) socket?.destroy();
    }, closeTimeoutMs);
    await ended;
    clearTimeout(timer);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  /**
   * Requests of one connection one after another: the answer to a pipelined one has no socket before its turn
   * comes, and if the connection ends first nothing ever tells whoever works at it.
   */
  #queue(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const before = this.#last.get(socket);
    this.#last.set(socket, response);
    response.once('close', () => {
      if (this.#last.get(socket) === response) this.#last.delete(socket);
    });
    if (before === undefined) this.#take(request, response);
    else
      before.once('close', () => {
        if (!socket.destroyed) this.#take(request, response);
      });
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    if (this.#handler === undefined) {
      this.#answer(request.url ?? '', response);
      return;
    }
    this.#underWay.add(response);
    response.once('close', () => this.#underWay.delete(response));
    this.#handler(request, response);
  }

  #answer(url: string, response: ServerResponse): void {
    const reasons = this.#reasons();
    const isHealth = url.split('?', 1)[0] === '/healthz';
    const { status, body } = isHealth ? { status: 200, body: { ok: true } } : readyAnswer(reasons);
    const head = { 'Content-Type': 'application/json', 'Retry-After': '1', Connection: 'close' };
    response.writeHead(status, head).end(JSON.stringify(body));
  }
}
