import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '../../core/errors.ts';
import { type NotReady, readyAnswer } from '../../core/telemetry/readiness.ts';
import { HttpListener, type ListenerLimits } from './http-listener.ts';
import type { Scrape } from './metrics-route.ts';

/**
 * Serves only `/healthz`, `/readyz` and `/metrics`, on an address of their own, for a balancer or Prometheus on another
 * machine (D26).
 */
export class Probe {
  readonly #reasons: () => readonly NotReady[];
  #listener: HttpListener | undefined;
  #scrape: Scrape | undefined;

  private constructor(reasons: () => readonly NotReady[]) {
    this.#reasons = reasons;
  }

  /** @throws Error when it cannot listen on the address. */
  static async open(
    address: { host: string; port: number },
    limits: ListenerLimits,
    reasons: () => readonly NotReady[],
  ): Promise<Probe> {
    const probe = new Probe(reasons);
    probe.#listener = await HttpListener.open(address, limits, (request, response) => {
      void probe.#answer(request, response);
    });
    return probe;
  }

  /** Makes metrics available. */
  attach(scrape: Scrape): void {
    this.#scrape = scrape;
  }

  async close(): Promise<void> {
    await this.#listener?.close();
  }

  async #answer({ method, url = '' }: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = method === 'GET' || method === 'HEAD' ? url.split('?', 1)[0] : undefined;
    if (path === '/healthz') return answer(response, 200, { ok: true });
    if (path === '/metrics' && this.#scrape !== undefined) return this.#metrics(this.#scrape, response);
    if (path === '/readyz' || path === '/metrics') {
      const { status, body } = readyAnswer(this.#reasons());
      return answer(response, status, body);
    }
    answer(response, 404, new ApiError('route_not_found'));
  }

  async #metrics(scrape: Scrape, response: ServerResponse): Promise<void> {
    try {
      const { type, text } = await scrape();
      response.setHeader('Content-Type', type).end(text);
    } catch {
      answer(response, 500, new ApiError('internal_error'));
    }
  }
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.statusCode = status;
  if (status === 503) response.setHeader('Retry-After', '1');
  response.setHeader('Content-Type', 'application/json').end(JSON.stringify(body));
}
