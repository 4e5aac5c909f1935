import type { FastifyRequest } from 'fastify';
import { fleetIdPattern } from '../../core/identity.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { RequestTrace, SpanBuffer } from '../../core/telemetry/trace.ts';
import { type AdminApp, routeOf } from '../request/admin-app.ts';

/** Log fields that identify a request: its route, not its path; nothing of its query, headers or body. */
export function describeRequest(request: FastifyRequest): Record<string, unknown> {
  const { fleet_id: fleet } = (request.params ?? {}) as { fleet_id?: string };
  return {
    request_id: request.id,
    method: request.method,
    route: routeOf(request),
    ...(fleet !== undefined && fleetIdPattern.test(fleet) && { fleet }),
  };
}

/** Traces requests whose client asks for it. */
export function traceRequests(app: AdminApp, spans: SpanBuffer): void {
  const traces = new WeakMap<FastifyRequest, RequestTrace>();
  // After the check of the token in onRequest.
  app.addHook('preParsing', async (request, reply) => {
    const { traceparent } = request.headers;
    if (request.principal === null || typeof traceparent !== 'string') return;
    const trace = spans.begin(traceparent, reply.elapsedTime);
    if (trace !== undefined) traces.set(request, trace);
  });
  app.addHook('onResponse', async (request, { statusCode }) => {
    const { fleet } = describeRequest(request);
    const trace = traces.get(request);
    if (trace === undefined) return;
    if (typeof fleet === 'string') trace.attributes['fleetpost.fleet'] = fleet;
    trace.end(`${request.method} ${routeOf(request) ?? ''}`, statusCode);
  });
}

/** Time for which refused requests of unknown clients share a line, after the first of them. */
const strangersLineMs = 5_000;

/** Counts refused requests without a valid token, or to no route, that have no line of their own: anybody can send any number. */
class Strangers {
  readonly #log: Log;
  #requests = 0;
  #address = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Returns true if the request is to have a line of its own. */
  note(address: string): boolean {
    if (this.#timer === undefined) {
      this.#timer = setTimeout(() => this.end(), strangersLineMs).unref();
      return true;
    }
    this.#requests += 1;
    this.#address = address;
    return false;
  }

  /** Logs those that were counted; the next one has a line of its own again. */
  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#requests === 0) return;
    const msg = 'more refused admin requests of unknown clients';
    this.#log.info({ requests: this.#requests, last_address: this.#address }, msg);
    this.#requests = 0;
  }
}

/** Adds X-Request-Id to every answer, and logs requests: those that may have changed something as `info`, others as `debug`. */
export function logRequests(app: AdminApp, log: Log): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('X-Request-Id', request.id);
  });
  const strangers = new Strangers(log);
  app.addHook('onClose', async () => strangers.end());
  app.addHook('onResponse', async (request, reply) => {
    const level = request.method === 'GET' || request.method === 'HEAD' ? 'debug' : 'info';
    if (!log.isLevelEnabled(level)) return;
    const { principal } = request;
    if (principal === null && reply.statusCode >= 400 && !strangers.note(request.ip)) return;
    log[level](
      {
        ...describeRequest(request),
        status: reply.statusCode,
        milliseconds: Math.round(reply.elapsedTime),
        address: request.ip,
        ...(principal && { principal: principal.id ?? principal.kind }),
      },
      'admin request',
    );
  });
}
