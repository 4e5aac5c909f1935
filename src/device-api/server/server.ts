import { sleep } from '../../core/async.ts';
import type { TlsFiles } from '../../core/config/tls.ts';
import { ApiError, unavailable } from '../../core/errors.ts';
import { type BodyLimits, claimBodyLimits, deviceBodyLimits, limitedTo } from '../body/body.ts';
import { claimEndpoint } from '../endpoints/claim.ts';
import { endpoints } from '../endpoints/index.ts';
import { pulseKindOf } from '../limits/fleet-pulse.ts';
import {
  type App,
  type AppDescriptor,
  createApp,
  type HttpRequest,
  type HttpResponse,
  uws,
} from '../uws/uws.ts';
import { Acceptance, answerAnyone } from './acceptance.ts';
import type { HttpContext } from './context.ts';
import { Exchange, type FrontEnd, PendingExchanges } from './exchange.ts';
import { createReply, errorReply } from './reply.ts';
import { TurnBudget } from './turn-budget.ts';

/** An app with one certificate, and the state its exchanges share. */
interface FrontApp {
  readonly app: App;
  readonly frontEnd: FrontEnd;
}

/** Maximum apps with an earlier certificate whose connections live on. One more drains the oldest. */
const earlierMax = 2;
/** Time for the connections of a draining app to end by themselves; covers the library's idle timer. */
const drainMs = 15_000;

/**
 * The apps of a front end, oldest first: the last gets the new connections, earlier ones keep theirs. A draining app
 * ends each connection with its next answer and then closes the rest: idle connections, and event streams, which
 * devices reopen.
 */
class FrontApps {
  readonly #apps: FrontApp[] = [];
  #draining: { one: FrontApp; closeAtMs: number } | undefined;

  add(one: FrontApp): void {
    this.#apps.push(one);
    if (this.#apps.length <= earlierMax + 1) return;
    // Closes the previous draining app, so that fast renewals do not pile up apps.
    this.#close();
    const oldest = this.#apps.shift() as FrontApp;
    oldest.frontEnd.isClosing = true;
    this.#draining = { one: oldest, closeAtMs: performance.now() + drainMs };
  }

  all(): readonly FrontApp[] {
    return this.#draining === undefined ? this.#apps : [this.#draining.one, ...this.#apps];
  }

  /** To be called every second. */
  closeDrained(nowMs: number): void {
    if (this.#draining === undefined || nowMs < this.#draining.closeAtMs) return;
    if (this.#draining.one.frontEnd.pending.size === 0) this.#close();
  }

  #close(): void {
    this.#draining?.one.app.close();
    this.#draining = undefined;
  }
}

/** Route names for metrics; the last is for requests that match none. */
export const routeNames: readonly string[] = [
  ...endpoints.map(({ method, path }) => `${method} ${path}`),
  'GET /',
  `${claimEndpoint.method} ${claimEndpoint.path}`,
  'unknown',
];

/** D23. */
const root = createReply(200, '{"fostrom":true,"endpoint":"device","latest_endpoint_version":1}');

function isHead(request: HttpRequest): boolean {
  return request.getMethod() === 'head';
}

const drainPollMs = 20;

/** The front end of one worker: the device API on apps without a listener of their own. */
export class DeviceServer {
  readonly #context: HttpContext;
  readonly #bodies: BodyLimits;
  readonly #claims: BodyLimits;
  readonly #turn: TurnBudget;
  readonly #apps = new FrontApps();
  readonly #deadline: NodeJS.Timeout;

  constructor(context: HttpContext, tls: TlsFiles) {
    this.#context = context;
    this.#bodies = deviceBodyLimits(context.config);
    this.#claims = claimBodyLimits(context.config);
    this.#turn = new TurnBudget(context.heartbeat);
    // Leaves the library's name out of every response of ours; pages of its parser have it compiled in.
    uws._cfg('silent');
    this.renewCertificate(tls);
    this.#deadline = setInterval(() => this.#watchPending(), 1_000);
  }

  get descriptor(): AppDescriptor {
    return (this.#apps.all().at(-1) as FrontApp).app.getDescriptor();
  }

  /**
   * Returns the descriptor for new connections. Existing ones stay on their app, because the library cannot change the
   * certificate of an app that serves.
   * @throws Error when the TLS library refuses the files.
   */
  renewCertificate(tls: TlsFiles): AppDescriptor {
    this.#apps.add(this.#open(tls));
    return this.descriptor;
  }

  /** Drains requests in flight for at most `seconds`, then closes every connection. */
  async close(seconds: number): Promise<void> {
    const endMs = performance.now() + seconds * 1_000;
    const apps = this.#apps.all();
    for (const { frontEnd } of apps) frontEnd.isClosing = true;
    while (apps.some(({ frontEnd }) => frontEnd.pending.size > 0) && performance.now() < endMs) {
      await sleep(drainPollMs);
    }
    clearInterval(this.#deadline);
    for (const { app } of this.#apps.all()) app.close();
  }

  #open(tls: TlsFiles): FrontApp {
    const { config, anonymous, metrics, log } = this.#context;
    const { strictStatuses } = config;
    const pending = new PendingExchanges();
    const frontEnd = {
      strictStatuses,
      metrics,
      log,
      routeNames,
      pending,
      bodyMemory: this.#bodies.memory,
      turn: this.#turn,
      unreadBytesMax: config.bodyBytesMax,
      isClosing: false,
    };
    const app = createApp(tls);
    const context = this.#context;
    context.connections.watch(app);
    for (const [index, endpoint] of endpoints.entries()) {
      const method = endpoint.method.toLowerCase() as 'get' | 'head' | 'post' | 'put';
      const bodies = limitedTo(this.#bodies, endpoint.bodyBytesMax);
      const route = { endpoint, context, bodies, pulseKind: pulseKindOf(endpoint.path) };
      app[method](endpoint.path, (response, request) => {
        const exchange = new Exchange(response, index, endpoint.method === 'HEAD', frontEnd);
        new Acceptance(route, request, response, exchange).start();
      });
    }
    app.get('/', (response, request) => {
      const exchange = new Exchange(response, endpoints.length, isHead(request), frontEnd);
      answerAnyone(exchange, request, root, anonymous);
    });
    const unknown = errorReply(new ApiError('route_not_found'), strictStatuses);
    const answerUnknown = (response: HttpResponse, request: HttpRequest): void => {
      const exchange = new Exchange(response, endpoints.length + 2, isHead(request), frontEnd);
      answerAnyone(exchange, request, unknown, anonymous);
    };
    const claiming = {
      endpoint: claimEndpoint,
      context,
      bodies: this.#claims,
      pulseKind: pulseKindOf(claimEndpoint.path),
    };
    app.post(claimEndpoint.path, (response, request) => {
      if (!context.config.settings.current.claiming) return answerUnknown(response, request);
      const exchange = new Exchange(response, endpoints.length + 1, false, frontEnd);
      new Acceptance(claiming, request, response, exchange).start();
    });
    app.any('/*', answerUnknown);
    return { app, frontEnd };
  }

  /** Answers requests that exceed their timeout with 503, rather than leaving the device hanging. */
  #watchPending(): void {
    const nowMs = performance.now();
    const { databaseTimeoutMilliseconds, settings } = this.#context.config;
    const oldestMs = nowMs - settings.current.requestTimeoutSeconds * 1_000;
    const longestMs = nowMs - databaseTimeoutMilliseconds;
    for (const { frontEnd } of this.#apps.all()) {
      for (const exchange of frontEnd.pending.all()) {
        exchange.body?.watch(nowMs);
        if (exchange.startedAtMs < oldestMs) {
          exchange.fail(unavailable('The request took too long (requestTimeoutSeconds). Retry later.'));
        } else if (exchange.waitsForEngineSinceMs < longestMs) {
          // Each statement has its own timeout, but a request runs several in sequence.
          exchange.fail(unavailable('The database is too slow (databaseTimeoutMilliseconds). Retry later.'));
        }
      }
    }
    this.#apps.closeDrained(nowMs);
  }
}
