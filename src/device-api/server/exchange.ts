import { clientAddressOf } from '../../core/address.ts';
import { ApiError } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { Log } from '../../core/telemetry/log.ts';
import { newRequestId } from '../../core/telemetry/request-id.ts';
import type { RequestTrace } from '../../core/telemetry/trace.ts';
import type { WorkerMetrics } from '../../core/telemetry/worker-metrics.ts';
import { BodyPieces, type BodyReader, tooManyPieces } from '../body/body.ts';
import type { BodyMemory, Holder } from '../body/body-memory.ts';
import type { HttpResponse } from '../uws/uws.ts';
import { errorReply, lastHead, type Reply } from './reply.ts';
import { chunked, type RequestHeaders } from './request-headers.ts';
import type { TurnBudget } from './turn-budget.ts';

/**
 * Sends the rest of an answer under backpressure, as the socket drains. The library would buffer without a bound
 * whatever `end` gets, for a client that keeps asking and never reads. Without memory for it, the connection is
 * closed.
 */
class PartialAnswer implements Holder {
  readonly device: string;
  readonly address: string;
  readonly #response: HttpResponse;
  readonly #memory: BodyMemory;
  bytes = 0;
  /** Once the answer has ended, the library reports no abort any more, and the response must not be touched. */
  #hasEnded = false;

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

  /** `body` is the whole body, of which the socket has taken a part. */
  send(body: string | Buffer, bytes: number): void {
    const response = this.#response;
    response.onAborted(() => this.#end());
    if (!this.#memory.keep(this, bytes)) {
      this.evict();
      return;
    }
    const whole = Buffer.from(body);
    response.onWritable((offset) => {
      const [isTaken, isDone] = response.tryEnd(whole.subarray(offset), bytes);
      if (isDone) this.#end();
      return isTaken;
    });
  }

  /** Closes a turn later: the library may be in the middle of this answer, or of another. */
  evict(): void {
    setImmediate(() => {
      if (!this.#hasEnded) this.#response.close();
    });
  }

  #end(): void {
    this.#hasEnded = true;
    this.#memory.free(this);
  }
}

const behindCutOff = (): ApiError =>
  new ApiError('bad_request', {
    msg: 'A request before this one was cut off, of this connection or another. Send it again.',
    closeConnection: true,
  });

/** Delay of a 429: a client that floods on one connection gets ten of them a second. */
const holdMs = 100;

/** State shared by all exchanges of a front end. */
export interface FrontEnd {
  readonly strictStatuses: boolean;
  readonly metrics: WorkerMetrics;
  readonly log: Log;
  readonly routeNames: readonly string[];
  /** Exchanges whose handler has returned without an answer. */
  readonly pending: PendingExchanges;
  readonly bodyMemory: BodyMemory;
  readonly turn: TurnBudget;
  /** Largest body that a connection may send and go on, if nobody reads it. */
  readonly unreadBytesMax: number;
  /** Set while draining: connections end with their next answer, so that the last ones can finish. */
  isClosing: boolean;
}

/**
 * Exchanges that wait for their answer, in no order. An array and not a Set: V8 links each table of a Set to its
 * successor as entries come and go, which kept every request alive through two garbage collections.
 */
export class PendingExchanges {
  readonly #exchanges: Exchange[] = [];

  get size(): number {
    return this.#exchanges.length;
  }

  add(exchange: Exchange): void {
    exchange.pendingIndex = this.#exchanges.push(exchange) - 1;
  }

  /** Moves the last exchange into the freed slot. */
  remove(exchange: Exchange): void {
    const last = this.#exchanges.pop();
    if (last === undefined || last === exchange) return;
    this.#exchanges[exchange.pendingIndex] = last;
    last.pendingIndex = exchange.pendingIndex;
  }

  /** Returns a copy, because the caller may end exchanges while iterating. */
  all(): Exchange[] {
    return [...this.#exchanges];
  }
}

/**
 * One request and its one answer. Only this class writes to the socket, at most once and never after an abort:
 * uWebSockets.js ends the process over either.
 */
export class Exchange {
  readonly #response: HttpResponse;
  readonly #routeIndex: number;
  readonly #isHead: boolean;
  readonly #frontEnd: FrontEnd;
  startedAtMs = performance.now();
  /** Since when only the engine is waited for, if that is asynchronous. */
  waitsForEngineSinceMs = Number.POSITIVE_INFINITY;
  #open = true;
  /** True if its handler has returned without an answer. */
  #deferred = false;
  #clientCloses = false;
  /** State of a chunked body. */
  #chunks: 'arriving' | 'ended' | undefined;
  /** Reply that waits for the end of a body that nobody reads. */
  #due: Reply | undefined;
  #declaredBytes = 0;
  /** Set once it was cut off. */
  #cutAddress: string | undefined;
  /** Index among the pending exchanges. */
  pendingIndex = 0;
  /** Set once the device has authenticated. */
  deviceKey: DeviceKey | undefined;
  /** Reader of the body; cancelled when the exchange ends. */
  body: BodyReader | undefined;
  /** What it waits for; ended when the exchange ends. */
  #waiting: { end(): void } | undefined;
  /** Set only if the client asked for a trace. */
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

  /** Address of the client, or of the proxy in front. */
  get address(): string {
    return clientAddressOf(new Uint8Array(this.#response.getRemoteAddress()));
  }

  /** Owner of its memory: the device, or its address until the device has authenticated. */
  get device(): string {
    return this.deviceKey ?? this.address;
  }

  /** Undefined once the response has ended, which must not be asked any more. */
  get addressBytes(): Uint8Array | undefined {
    return this.#open ? new Uint8Array(this.#response.getRemoteAddress()) : undefined;
  }

  /**
   * Reads the request's framing and returns the length of its body. The library may parse a chunked body differently
   * from a proxy: it parses trailers as a request and accepts invalid sizes. To prevent request smuggling, a chunked
   * request is the last of its connection, and answered a turn after its end: a request that follows finds an answer
   * due, and the library closes the connection.
   * @throws ApiError bad_request for ambiguous framing, or if it may follow a request that was cut off.
   */
  frame(headers: RequestHeaders): number {
    this.#clientCloses = headers.asksToClose;
    if (this.#frontEnd.turn.isBehindCutOff(this)) throw behindCutOff();
    const bodyBytes = headers.bodyBytes;
    this.#declaredBytes = bodyBytes;
    if (bodyBytes === chunked) {
      this.#chunks = 'arriving';
      this.defer();
      // A BodyReader, if one is made, replaces this handler.
      this.#skipBody();
    }
    return bodyBytes;
  }

  /** Drops what arrives of a body that nobody reads, within bounds: its answer is due at its end, or beyond them. */
  #skipBody(): void {
    const pieces = new BodyPieces();
    this.#response.onData((chunk, isLast) => {
      const isFlood = pieces.isFlood(chunk.byteLength) || pieces.bytes > this.#frontEnd.unreadBytesMax;
      if (isFlood && this.#open) {
        this.#cutOff(this.#due ?? errorReply(tooManyPieces(), this.#frontEnd.strictStatuses));
      }
      if (isLast) this.endBody();
    });
  }

  /** Must be called before a handler returns without an answer; otherwise the library ends the process. */
  defer(): void {
    if (this.#deferred) return;
    this.#deferred = true;
    this.#frontEnd.pending.add(this);
    this.#response.onAborted(() => this.#close());
  }

  /** Lets it wait for something else than this server, for so long at most: its own time stands still meanwhile. */
  pause(waiting: { end(): void }, seconds: number): void {
    this.#waiting = waiting;
    this.startedAtMs = performance.now() + seconds * 1_000;
    this.waitsForEngineSinceMs = Number.POSITIVE_INFINITY;
    if (!this.#open) waiting.end();
  }

  resume(): void {
    this.#waiting = undefined;
    this.startedAtMs = performance.now();
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

  /** Delays the reply: a client reads no answer before it has sent all. A second reply is the timeout's and does not wait. */
  #replyBehindChunks(reply: Reply): void {
    const isRead = this.#chunks === 'ended' || this.body !== undefined;
    if (isRead || this.#due !== undefined) this.#replyLater(reply);
    else this.#due = reply;
  }

  /** To be called at the end of a body that nobody reads, or of which nothing is read any more. */
  endBody(): void {
    if (this.#cutAddress !== undefined) this.#frontEnd.turn.endCutOff(this.#cutAddress);
    if (this.#chunks === undefined) return;
    this.#chunks = 'ended';
    if (this.#due !== undefined) this.#replyLater(this.#due);
  }

  /**
   * Answers an error in the middle of a body, and ends the connection in this turn, which the body itself may not let end:
   * the library reads on while there is more. It closes once it has parsed what it has read, and not before, because to
   * close a connection among its chunks would have it use what it has freed. A request that follows in there is refused.
   */
  cutOff(error: ApiError): void {
    if (this.#open) this.#cutOff(errorReply(error, this.#frontEnd.strictStatuses));
  }

  #cutOff({ status, head, body }: Reply): void {
    this.#cutAddress = this.address;
    this.#end(status);
    this.#response.writeStatus(lastHead(head, this.#clientCloses));
    this.#response.end(body ?? '', true);
  }

  #answer(reply: Reply): void {
    if (!this.#open) {
      reply.stream?.close();
      return;
    }
    this.#end(reply.status);
    // Inside the handler, the library has already corked the socket.
    if (this.#deferred) this.#response.cork(() => this.#write(reply));
    else this.#write(reply);
  }

  #end(status: number): void {
    this.#close();
    this.#frontEnd.metrics.answered(this.#routeIndex, status, (performance.now() - this.startedAtMs) / 1_000);
    this.trace?.end(this.#frontEnd.routeNames[this.#routeIndex] ?? '', status);
  }

  /**
   * Refuses a request whose end is unclear, a turn later: pipelined data behind it may already be here, which the
   * library would still answer, but it closes a connection that has an answer due.
   */
  refuse(error: unknown): void {
    this.defer();
    this.#skipBody();
    setImmediate(() => this.fail(error));
  }

  /** Refuses with a delay: a rate-limited client that waits for its answer cannot send again meanwhile. */
  hold(error: ApiError): void {
    this.defer();
    setTimeout(() => this.fail(error), holdMs);
  }

  fail(error: unknown): void {
    const known = error instanceof ApiError ? error : this.#logged(error);
    this.reply(errorReply(known, this.#frontEnd.strictStatuses));
  }

  /** Logs an unexpected error, which is a defect or a damaged store. */
  #logged(error: unknown): ApiError {
    const requestId = newRequestId();
    const { log, routeNames } = this.#frontEnd;
    log.error(
      { err: error, request_id: requestId, route: routeNames[this.#routeIndex] },
      'request handler failed',
    );
    return new ApiError('internal_error', { requestId });
  }

  #write(reply: Reply): void {
    const response = this.#response;
    const isUnread = this.body === undefined && this.#declaredBytes > this.#frontEnd.unreadBytesMax;
    const isLast =
      this.#chunks !== undefined || isUnread || reply.closeConnection || this.#frontEnd.isClosing;
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
      this.#sendBody(reply.body);
    }
  }

  /**
   * Writes an answer without a body. With one, the library closes the connection only if the client has asked for it;
   * and it does not report how many are buffered for a client that does not read, so an unauthenticated client gets
   * only one.
   */
  #writeHead(head: string, isLast: boolean): void {
    const response = this.#response;
    if (this.#clientCloses) {
      response.writeStatus(lastHead(head, true));
      response.endWithoutBody();
    } else if (isLast || this.deviceKey === undefined) {
      response.writeStatus(`${lastHead(head, true)}\r\nDate: ${new Date().toUTCString()}\r\n`);
      this.#cut();
    } else {
      response.writeStatus(head);
      response.endWithoutBody();
    }
  }

  /** Writes as much as the socket takes, and the rest as it drains. */
  #sendBody(body: string | Buffer): void {
    const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    const [, isDone] = this.#response.tryEnd(body, bytes);
    if (!isDone) new PartialAnswer(this.#response, this.#frontEnd.bodyMemory, this).send(body, bytes);
  }

  /** Closes the connection a turn later: the library is still in the middle of the answer. */
  #cut(): void {
    let isAborted = false;
    this.#response.onAborted(() => {
      isAborted = true;
    });
    setImmediate(() => {
      if (!isAborted) this.#response.close();
    });
  }

  #close(): void {
    this.#open = false;
    this.body?.cancel();
    this.#waiting?.end();
    if (this.#deferred) this.#frontEnd.pending.remove(this);
  }
}
