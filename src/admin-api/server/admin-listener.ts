import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { settlesWithin } from '../../core/async.ts';
import type { TlsFiles } from '../../core/config/tls.ts';
import { ConnectionRate } from '../../core/limits/connection-rate.ts';
import type { Log } from '../../core/telemetry/log.ts';
import { type NotReady, readyAnswer } from '../../core/telemetry/readiness.ts';
import type { AdminApiConfig } from '../config.ts';
import { certifiedHosts, configuredHosts, hostRefusal } from './host-check.ts';
import { HttpListener, type ListenAddress, type ListenerLimits } from './http-listener.ts';
import type { Scrape } from './metrics-route.ts';
import type { Probe } from './probe.ts';

/** Time for requests in flight to end when the admin server closes. */
const closeTimeoutMs = 2_000;
/** Time for connections that were cut off to close. */
const cutOffTimeoutMs = 1_000;

export interface AdminListenerOptions {
  address: ListenAddress;
  /** Closed with the listener. */
  probe: Probe | undefined;
  config: ListenerLimits & Pick<AdminApiConfig, 'settings'>;
  reasons: () => readonly NotReady[];
  log: Log;
}

/**
 * Listens on the admin address from the beginning of a start to the very end: answers `/healthz` and `/readyz` also
 * while a reshard takes minutes and the admin API is not attached yet, and while requests drain.
 */
export class AdminListener {
  readonly #options: AdminListenerOptions;
  readonly #inFlight = new Set<ServerResponse>();
  #listener: HttpListener | undefined;
  #handler: RequestListener | undefined;
  #certifiedHosts: readonly string[] = [];
  #onRenewal = (): void => {};

  private constructor(options: AdminListenerOptions) {
    this.#options = options;
    const { tls } = options.address;
    if (tls !== undefined) this.#certifiedHosts = certifiedHosts(tls);
  }

  /** @throws Error when it cannot listen on the address. */
  static async open(options: AdminListenerOptions): Promise<AdminListener> {
    const listener = new AdminListener(options);
    const { address, config, log } = options;
    const { settings } = config;
    const rate = new ConnectionRate({
      limit: 'adminConnectionsPerSecondPerAddressMax',
      perSecondMax: () => settings.current.adminConnectionsPerSecondPerAddressMax,
      log,
    });
    listener.#listener = await HttpListener.open(
      address,
      config,
      (request, response) => listener.#handle(request, response),
      address.tls === undefined ? undefined : rate,
    );
    return listener;
  }

  get port(): number {
    return this.#opened.port;
  }

  get scheme(): 'http' | 'https' {
    return this.#options.address.tls === undefined ? 'http' : 'https';
  }

  /** Host names that it answers to, besides loopback and its own address. */
  get allowedHosts(): string[] {
    const { adminHosts } = this.#options.config.settings.current;
    return [...configuredHosts(adminHosts), ...this.#certifiedHosts];
  }

  /** Uses the certificate for new connections, and answers to the names in it. */
  renewCertificate(tls: TlsFiles): void {
    this.#opened.renewCertificate(tls);
    this.#certifiedHosts = certifiedHosts(tls);
    this.#onRenewal();
  }

  /** Calls back after each renewal of the certificate, which may have other names. */
  onRenewal(callback: () => void): void {
    this.#onRenewal = callback;
  }

  /** Routes every request to the admin server from now on, and makes metrics available. */
  attach(handler: RequestListener, scrape: Scrape): void {
    this.#handler = handler;
    this.#options.probe?.attach(scrape);
  }

  /** Stops routing requests to the admin server; settles when those in flight have ended or were cut off. */
  async drain(): Promise<void> {
    this.#handler = undefined;
    const responses = [...this.#inFlight];
    const ended = Promise.all(
      responses.map((response) => new Promise((resolve) => response.once('close', resolve))),
    );
    if (await settlesWithin(closeTimeoutMs, ended)) return;
    // A client that neither reads nor disconnects must not delay the shutdown.
    for (const { socket } of responses) socket?.destroy();
    // Nor must an answer that has lost its connection and never says so.
    await settlesWithin(cutOffTimeoutMs, ended);
  }

  async close(): Promise<void> {
    await Promise.all([this.#listener?.close(), this.#options.probe?.close()]);
  }

  get #opened(): HttpListener {
    if (this.#listener === undefined) throw new Error('the listener is closed');
    return this.#listener;
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    if (this.#handler === undefined) {
      this.#answer(request, response);
      return;
    }
    this.#inFlight.add(response);
    response.once('close', () => this.#inFlight.delete(response));
    this.#handler(request, response);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { reasons } = this.#options;
    const isHealth = request.url?.split('?', 1)[0] === '/healthz';
    const refusal = hostRefusal(request, this.allowedHosts);
    const answer = isHealth ? { status: 200, body: { ok: true } } : readyAnswer(reasons());
    const { status, body } = refusal === undefined ? answer : { status: refusal.status, body: refusal };
    const head = { 'Content-Type': 'application/json', 'Retry-After': '1', Connection: 'close' };
    response.writeHead(status, head).end(JSON.stringify(body));
  }
}
