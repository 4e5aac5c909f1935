import { addressOf } from '../core/address.ts';
import { ApiError } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import type { WorkerMetrics } from '../core/metrics.ts';
import { newRequestId } from '../core/request-id.ts';
import type { RequestTrace } from '../core/trace.ts';
import type { BodyReader } from './body.ts';
import type { BodyMemory } from './body-memory.ts';
import { errorReply, type Reply } from './reply.ts';
import type { HttpResponse } from './uws.ts';

/** Time that a 429 is held back: a client on one connection that floods gets ten of them a second. */
const holdMs = 100;

/** What all exchanges of a front end share. */
export interface FrontEnd {
  readonly strictStatuses: boolean;
  readonly metrics: WorkerMetrics;
  readonly log: Log;
  readonly routeNames: readonly string[];
  /** Those whose handler has returned without an answer. */
  readonly pending: PendingExchanges;
  readonly bodyMemory: BodyMemory;
  /** Set when the server stops: connections end with their next answer, so that the last ones can finish. */
  isClosing: boolean;
}

/**
 * Exchanges that wait for their answer, in no order. An array and not a Set: V8 links each table of a Set to
 * the one that follows it as entries come and go, and so carried every request through two garbage collections.
 */
export class PendingExchanges {
  readonly #exchanges: Exchange[] = [];

  get size(): number {
    return this.#exchanges.length;
  }

  add(exchange: Exchange): void {
    exchange.pendingIndex = this.#exchanges.push(exchange) - 1;
  }

  /** The last takes its place. */
  remove(exchange: Exchange): void {
    const last = this.#exchanges.pop();
    if (last === undefined || last === exchange) return;
    this.#exchanges[exchange.pendingIndex] = last;
    last.pendingIndex = exchange.pendingIndex;
  }

  /** As they are now: whoever goes over them may end them. */
  all(): Exchange[] {
    return [...this.#exchanges];
  }
}

/**
 * One request and its one answer. Only this class writes to the socket, at most once, and never after the
 * client has gone: uWebSockets.js ends the process over either.
 */
export class Exchange {
  readonly #response: HttpResponse;
  readonly #routeIndex: number;
  readonly #isHead: boolean;
  readonly #frontEnd: FrontEnd;
  readonly startedAtMs = performance.now();
  #open = true;
  /** Whether its handler has returned without an answer. */
  #deferred = false;
  /** Its place among the pending. */
  pendingIndex = 0;
  /** Being read; nobody waits for it once the exchange is over. */
  body: BodyReader | undefined;
  /** Only where its sender asked to trace it. */
  trace: RequestTrace | undefined;

  constructor(response: HttpResponse, routeIndex: number, isHead: boolean, frontEnd: FrontEnd) {
    this.#response = response;
    this.#routeIndex = routeIndex;
    this.#isHead = isHead;
    this.#frontEnd = frontEnd;
  }

  get isOpen(): boolean {
    return this.#open;
  }

  /** Of the client, or of the proxy before it. */
  get address(): string {
    return addressOf(new Uint8Array(this.#response.getRemoteAddress()));
  }

  /** Not to be asked of a response that is over. */
  get addressBytes(): Uint8Array | undefined {
    return this.#open ? new Uint8Array(this.#response.getRemoteAddress()) : undefined;
  }

  /** Must be called before a handler returns that has not answered: the library ends the process else. */
  defer(): void {
    if (this.#deferred) return;
    this.#deferred = true;
    this.#frontEnd.pending.add(this);
    this.#response.onAborted(() => this.#close());
  }

  reply(reply: Reply): void {
    if (!this.#open) {
      reply.stream?.close();
      return;
    }
    this.#close();
    this.#frontEnd.metrics.answered(
      this.#routeIndex,
      reply.status,
      (performance.now() - this.startedAtMs) / 1_000,
    );
    this.trace?.end(this.#frontEnd.routeNames[this.#routeIndex] ?? '', reply.status);
    // Inside its handler the library has corked the socket already.
    if (this.#deferred) this.#response.cork(() => this.#write(reply));
    else this.#write(reply);
  }

  /**
   * Refuses a request of which it is unclear where it ends, a turn later: what the client sent behind it may
   * be here already, and the library would still answer that, but closes a connection that has an answer due.
   */
  refuse(error: unknown): void {
    this.defer();
    setImmediate(() => this.fail(error));
  }

  /** Refuses who comes too often, but not at once: whoever waits for an answer cannot ask again meanwhile. */
  hold(error: ApiError): void {
    this.defer();
    setTimeout(() => this.fail(error), holdMs);
  }

  fail(error: unknown): void {
    const known = error instanceof ApiError ? error : this.#logged(error);
    this.reply(errorReply(known, this.#frontEnd.strictStatuses));
  }

  /** What is no answer but a defect, or damage of the store. */
  #logged(error: unknown): ApiError {
    const requestId = newRequestId();
    const { log, routeNames } = this.#frontEnd;
    log.error({ err: error, request_id: requestId, route: routeNames[this.#routeIndex] }, 'a handler failed');
    return new ApiError('internal_error', { requestId });
  }

  #write(reply: Reply): void {
    const response = this.#response;
    if (reply.stream) {
      response.writeStatus(reply.head);
      reply.stream.open(response);
    } else if (reply.body === undefined || this.#isHead) {
      response.writeStatus(reply.head);
      response.endWithoutBody();
    } else if (reply.closeConnection || this.#frontEnd.isClosing) {
      // The library writes the header of a connection that is closed by itself.
      response.writeStatus(reply.head.replace('Connection: keep-alive\r\n', ''));
      response.end(reply.body, true);
    } else {
      response.writeStatus(reply.head);
      this.#end(reply.body);
    }
  }

  /**
   * Hands over as much as the socket takes, the rest when there is room: what `end` is given the library keeps
   * in memory, and a client may ask again and again and never read. Without room for it the connection ends.
   */
  #end(body: string | Buffer): void {
    const response = this.#response;
    const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    const [, isDone] = response.tryEnd(body, bytes);
    if (isDone) return;
    const { bodyMemory } = this.#frontEnd;
    if (!bodyMemory.keep(bytes)) {
      this.#cut();
      return;
    }
    const whole = Buffer.from(body);
    response.onAborted(() => bodyMemory.free(bytes));
    response.onWritable((offset) => {
      const [isTaken, isOver] = response.tryEnd(whole.subarray(offset), bytes);
      // The library tells of an abort no more once the answer is over.
      if (isOver) bodyMemory.free(bytes);
      return isTaken;
    });
  }

  /** A turn later: the library is still in the middle of the answer. */
  #cut(): void {
    let isGone = false;
    this.#response.onAborted(() => {
      isGone = true;
    });
    setImmediate(() => {
      if (!isGone) this.#response.close();
    });
  }

  #close(): void {
    this.#open = false;
    this.body?.cancel();
    if (this.#deferred) this.#frontEnd.pending.remove(this);
  }
}
