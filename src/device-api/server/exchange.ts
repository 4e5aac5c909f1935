import { clientAddressOf } from '../../core/address.ts';
import { ApiError } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';
import { newRequestId } from '../../core/request-id.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { RequestTrace } from '../../core/telemetry/trace.ts';
import type { WorkerMetrics } from '../../core/telemetry/worker-metrics.ts';
import type { BodyReader } from '../body/body.ts';
import type { BodyMemory, Holder } from '../body/body-memory.ts';
import type { HttpResponse } from '../uws/uws.ts';
import { errorReply, lastHead, type Reply } from './reply.ts';
import { chunked, type RequestHeaders } from './request-headers.ts';
import type { TurnBudget } from './turn-budget.ts';

/**
 * The rest of an answer that its socket does not take at once, handed over as there is room: what `end` is given the
 * library keeps in memory, and a client may ask again and again and never read. Without memory for it the
 * connection ends.
 */
class HalfSentAnswer implements Holder {
  readonly device: string;
  readonly address: string;
  readonly #response: HttpResponse;
  readonly #memory: BodyMemory;
  bytes = 0;
  /** The library tells of an abort no more once the answer is over, and it may not be touched after either. */
  #isOver = false;

  constructor(
    response: HttpResponse,
    memory: BodyMemory,
    { device, address }: Pick<Holder, 'device' | 'address'>,
  ) {
    this.#response = response;
    this.#memory = memory;
    this.device = device;
    this.address = address;
  }

  /** `body` is all of it, of which the socket has taken some. */
  send(body: string | Buffer, bytes: number): void {
    const response = this.#response;
    response.onAborted(() => this.#end());
    if (!this.#memory.keep(this, bytes)) {
      this.evict();
      return;
    }
    const whole = Buffer.from(body);
    response.onWritable((offset) => {
      const [isTaken, isOver] = response.tryEnd(whole.subarray(offset), bytes);
      if (isOver) this.#end();
      return isTaken;
    });
  }

  /** A turn later: the library may be in the middle of this answer, or of another. */
  evict(): void {
    setImmediate(() => {
      if (!this.#isOver) this.#response.close();
    });
  }

  #end(): void {
    this.#isOver = true;
    this.#memory.free(this);
  }
}

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
  readonly turn: TurnBudget;
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
  /** Since when nothing but the engine is waited for, where that may take its time. */
  waitsForEngineSinceMs = Number.POSITIVE_INFINITY;
  #open = true;
  /** Whether its handler has returned without an answer. */
  #deferred = false;
  #clientCloses = false;
  /** Of a chunked body. */
  #chunks: 'arriving' | 'ended' | undefined;
  /** What waits for their end. */
  #due: Reply | undefined;
  /** Its place among the pending. */
  pendingIndex = 0;
  /** Once it has shown its credentials. */
  known: DeviceKey | undefined;
  /** Being read; nobody waits for it once the exchange is over. */
  body: BodyReader | undefined;
  /** Only where its sender asked to trace it. */
  trace: RequestTrace | undefined;

  constructor(response: HttpResponse, routeIndex: number, isHead: boolean, frontEnd: FrontEnd) {
    this.#response = response;
    this.#routeIndex = routeIndex;
    this.#isHead = isHead;
    this.#frontEnd = frontEnd;
    frontEnd.turn.count();
  }

  get isOpen(): boolean {
    return this.#open;
  }

  /** Of the client, or of the proxy before it. */
  get address(): string {
    return clientAddressOf(new Uint8Array(this.#response.getRemoteAddress()));
  }

  /** Whose memory it takes: of nobody that is known, its address's. */
  get device(): string {
    return this.known ?? this.address;
  }

  /** Not to be asked of a response that is over. */
  get addressBytes(): Uint8Array | undefined {
    return this.#open ? new Uint8Array(this.#response.getRemoteAddress()) : undefined;
  }

  /**
   * What the headers say of the request's end: answers the length of its body. What the library makes of a chunked body
   * can differ from what others do: it parses trailers as a request, and passes sizes that are none. So a request
   * that has one is the last of its connection, and answered a turn after its end: what came behind it finds an
   * answer due, and the library closes the connection.
   * @throws ApiError bad_request for a request that can be read in two ways.
   */
  frame(headers: RequestHeaders): number {
    this.#clientCloses = headers.asksToClose;
    const bodyBytes = headers.bodyBytes;
    if (bodyBytes === chunked) {
      this.#chunks = 'arriving';
      this.defer();
      // Unless somebody reads the body, who then takes the place of this.
      this.#response.onData((_, isLast) => {
        if (isLast) this.#endChunks();
      });
    }
    return bodyBytes;
  }

  /** Must be called before a handler returns that has not answered: the library ends the process else. */
  defer(): void {
    if (this.#deferred) return;
    this.#deferred = true;
    this.#frontEnd.pending.add(this);
    this.#response.onAborted(() => this.#close());
  }

  reply(reply: Reply): void {
    if (this.#chunks !== undefined) this.#replyBehindChunks(reply);
    else if (!this.#deferred && this.#frontEnd.turn.isSpent) this.#replyLater(reply);
    else this.#answer(reply);
  }

  #replyLater(reply: Reply): void {
    this.defer();
    setImmediate(() => this.#answer(reply));
  }

  /** A client reads no answer before it has sent all. A second reply is the deadline's, and waits for nothing. */
  #replyBehindChunks(reply: Reply): void {
    const isRead = this.#chunks === 'ended' || this.body !== undefined;
    if (isRead || this.#due !== undefined) this.#replyLater(reply);
    else this.#due = reply;
  }

  #endChunks(): void {
    this.#chunks = 'ended';
    if (this.#due !== undefined) this.#replyLater(this.#due);
  }

  #answer(reply: Reply): void {
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
    const isLast = this.#chunks !== undefined || reply.closeConnection || this.#frontEnd.isClosing;
    if (reply.stream) {
      response.writeStatus(this.#clientCloses ? lastHead(reply.head, true) : reply.head);
      reply.stream.open(response);
    } else if (reply.body === undefined || this.#isHead) {
      this.#writeHead(reply.head, isLast);
    } else if (isLast || this.#clientCloses) {
      response.writeStatus(lastHead(reply.head, this.#clientCloses));
      response.end(reply.body, true);
    } else {
      response.writeStatus(reply.head);
      this.#end(reply.body);
    }
  }

  /**
   * An answer without a body. The library closes no connection with one, unless the client has asked for it; and it
   * does not say how many of them wait for a client that reads none, so whoever is not known gets one alone.
   */
  #writeHead(head: string, isLast: boolean): void {
    const response = this.#response;
    if (this.#clientCloses) {
      response.writeStatus(lastHead(head, true));
      response.endWithoutBody();
    } else if (isLast || this.known === undefined) {
      response.writeStatus(`${lastHead(head, true)}\r\nDate: ${new Date().toUTCString()}\r\n`);
      this.#cut();
    } else {
      response.writeStatus(head);
      response.endWithoutBody();
    }
  }

  /** Hands over as much as the socket takes, the rest when there is room. */
  #end(body: string | Buffer): void {
    const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    const [, isDone] = this.#response.tryEnd(body, bytes);
    if (!isDone) new HalfSentAnswer(this.#response, this.#frontEnd.bodyMemory, this).send(body, bytes);
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
