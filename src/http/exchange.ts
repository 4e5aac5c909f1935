import { ApiError } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import type { WorkerMetrics } from '../core/metrics.ts';
import type { BodyReader } from './body.ts';
import { errorReply, type Reply } from './reply.ts';
import type { HttpResponse } from './uws.ts';

/**
 * One request and its one answer. Only this class writes to the socket, at most once, and never after the
 * client has gone: uWebSockets.js ends the process over either.
 */
export class Exchange {
  readonly #response: HttpResponse;
  readonly #routeIndex: number;
  readonly #isHead: boolean;
  readonly #strictStatuses: boolean;
  readonly #metrics: WorkerMetrics;
  readonly #log: Log;
  readonly startedAtMs = performance.now();
  #open = true;
  /** The exchanges that wait for something, this one among them; undefined while its handler runs. */
  #pending: Set<Exchange> | undefined;
  /** Being read; nobody waits for it once the exchange is over. */
  body: BodyReader | undefined;

  constructor(
    response: HttpResponse,
    routeIndex: number,
    isHead: boolean,
    strictStatuses: boolean,
    metrics: WorkerMetrics,
    log: Log,
  ) {
    this.#response = response;
    this.#routeIndex = routeIndex;
    this.#isHead = isHead;
    this.#strictStatuses = strictStatuses;
    this.#metrics = metrics;
    this.#log = log;
  }

  get isOpen(): boolean {
    return this.#open;
  }

  /** Must be called before a handler returns that has not answered: the library ends the process else. */
  defer(pending: Set<Exchange>): void {
    this.#pending = pending;
    pending.add(this);
    this.#response.onAborted(() => this.#close());
  }

  reply(reply: Reply): void {
    if (!this.#open) {
      reply.stream?.close();
      return;
    }
    const deferred = this.#pending !== undefined;
    this.#close();
    this.#metrics.answered(this.#routeIndex, reply.status, (performance.now() - this.startedAtMs) / 1_000);
    // Inside its handler the library has corked the socket already.
    if (deferred) this.#response.cork(() => this.#write(reply));
    else this.#write(reply);
  }

  fail(error: unknown): void {
    if (!(error instanceof ApiError)) this.#log.error({ err: error }, 'a handler failed');
    const known = error instanceof ApiError ? error : new ApiError('internal_error');
    this.reply(errorReply(known, this.#strictStatuses));
  }

  #write(reply: Reply): void {
    const response = this.#response;
    response.writeStatus(reply.head);
    if (reply.stream) reply.stream.open(response);
    else if (reply.body === undefined || this.#isHead) response.endWithoutBody();
    else if (reply.closeConnection) response.end(reply.body, true);
    else response.end(reply.body);
  }

  #close(): void {
    this.#open = false;
    this.body?.cancel();
    this.#pending?.delete(this);
  }
}
