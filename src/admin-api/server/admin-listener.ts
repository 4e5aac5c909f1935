import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { type NotReady, readyAnswer } from '../../core/telemetry/readiness.ts';
import type { AdminApiConfig } from '../config.ts';
import { hostRefusal } from './host-check.ts';
import { HttpListener, type ListenerLimits } from './http-listener.ts';
import type { Scrape } from './metrics-route.ts';
import type { Probe } from './probe.ts';

/** Time that requests under way have when the admin server closes. */
const closeTimeoutMs = 2_000;

export interface AdminListenerOptions {
  address: { host: string; port: number };
  /** Closed with it. */
  probe: Probe | undefined;
  config: ListenerLimits & Pick<AdminApiConfig, 'adminHosts'>;
  reasons: () => readonly NotReady[];
}

/**
 * The admin address, held from the beginning of a start to the very end: `/healthz` and `/readyz` are answered
 * also while data moves for minutes and no route of the admin API is there yet, and while requests end.
 */
export class AdminListener {
  readonly #options: AdminListenerOptions;
  readonly #underWay = new Set<ServerResponse>();
  #listener: HttpListener | undefined;
  #handler: RequestListener | undefined;

  private constructor(options: AdminListenerOptions) {
    this.#options = options;
  }

  /** @throws Error when the address cannot be had. */
  static async open(options: AdminListenerOptions): Promise<AdminListener> {
    const door = new AdminListener(options);
    door.#listener = await HttpListener.open(options.address, options.config, (request, response) =>
      door.#take(request, response),
    );
    return door;
  }

  get port(): number {
    if (this.#listener === undefined) throw new Error('the door is closed');
    return this.#listener.port;
  }

  /** From now on every request goes to the admin server, and there are metrics. */
  attach(handler: RequestListener, scrape: Scrape): void {
    this.#handler = handler;
    this.#options.probe?.admit(scrape);
  }

  /** No request goes there any more; settles when those under way have ended, or were ended. */
  async drain(): Promise<void> {
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
    await Promise.all([this.#listener?.close(), this.#options.probe?.close()]);
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    if (this.#handler === undefined) {
      this.#answer(request, response);
      return;
    }
    this.#underWay.add(response);
    response.once('close', () => this.#underWay.delete(response));
    this.#handler(request, response);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { config, reasons } = this.#options;
    const isHealth = request.url?.split('?', 1)[0] === '/healthz';
    const refusal = hostRefusal(request, config.adminHosts);
    const said = isHealth ? { status: 200, body: { ok: true } } : readyAnswer(reasons());
    const { status, body } = refusal === undefined ? said : { status: refusal.status, body: refusal };
    const head = { 'Content-Type': 'application/json', 'Retry-After': '1', Connection: 'close' };
    response.writeHead(status, head).end(JSON.stringify(body));
  }
}
