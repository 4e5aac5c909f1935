import { ApiError } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import type { WorkerMetrics } from '../core/metrics.ts';
import { errorReply, type Reply, statusLines } from './reply.ts';
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
  #onClose: (() => void)[] | undefined;

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
    response.onAborted(() => this.#close());
  }

  /** Called once, when the exchange is over: answered, or its client gone. */
  onClose(callback: () => void): void {
    this.#onClose ??= [];
    this.#onClose.push(callback);
  }

  reply(reply: Reply): void {
    if (!this.#open) {
      reply.stream?.close();
      return;
    }
    this.#close();
    this.#metrics.answered(this.#routeIndex, reply.status, (performance.now() - this.startedAtMs) / 1_000);
    this.#response.cork(() => this.#write(reply));
  }

  fail(error: unknown): void {
    if (!(error instanceof ApiError)) this.#log.error({ err: error }, 'a handler failed');
    const known = error instanceof ApiError ? error : new ApiError('internal_error');
    this.reply(errorReply(known, this.#strictStatuses));
  }

  #write(reply: Reply): void {
    const response = this.#response;
    response.writeStatus(statusLines[reply.status] ?? String(reply.status));
    response.writeHeader('Cache-Control', 'no-store');
    // With the close flag the library writes this header itself.
    if (!reply.closeConnection) response.writeHeader('Connection', 'keep-alive');
    response.writeHeader('Content-Type', reply.stream ? 'text/event-stream' : 'application/json');
    for (const [name, value] of reply.headers ?? []) response.writeHeader(name, value);
    if (reply.stream) reply.stream.open(response);
    else if (reply.body === undefined || this.#isHead) response.endWithoutBody();
    else response.end(reply.body, reply.closeConnection ?? false);
  }

  #close(): void {
    this.#open = false;
    for (const callback of this.#onClose ?? []) callback();
    this.#onClose = undefined;
  }
}
