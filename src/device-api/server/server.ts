import { sleep } from '../../core/async.ts';
import { ApiError, queueFull, unavailable } from '../../core/errors.ts';
import { authenticate } from '../auth/authentication.ts';
import type { CachedDevice } from '../auth/cached-device.ts';
import { arrivedBody } from '../body/arrived-body.ts';
import {
  type BodyLimits,
  BodyReader,
  checkDeclared,
  claimBodyLimits,
  deviceBodyLimits,
} from '../body/body.ts';
import { acceptClaim } from '../endpoints/claim.ts';
import { endpoints } from '../endpoints/index.ts';
import { checkBytes, checkRate } from '../limits/rate-limit.ts';
import {
  type App,
  type AppDescriptor,
  createApp,
  type HttpRequest,
  type HttpResponse,
  type TlsFiles,
  uws,
} from '../uws/uws.ts';
import type { HttpContext } from './context.ts';
import { DeviceRequest, type Endpoint, type RequestInput } from './endpoint.ts';
import { Exchange, type FrontEnd, PendingExchanges } from './exchange.ts';
import { answerAnyone, refuse } from './refuse.ts';
import { createReply, errorReply } from './reply.ts';
import { isJson, RequestHeaders } from './request-headers.ts';
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
  'POST /v1/claim',
  'unknown',
];

/** D23. */
const root = createReply(200, '{"fostrom":true,"endpoint":"device","latest_endpoint_version":1}');

function isHead(request: HttpRequest): boolean {
  return request.getMethod() === 'head';
}

const noBody = Buffer.alloc(0);

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
    // Leaves the library's name out of every response.
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
      isClosing: false,
    };
    const app = createApp(tls);
    this.#context.connections.watch(app);
    for (const [index, endpoint] of endpoints.entries()) this.#register(app, frontEnd, endpoint, index);
    app.get('/', (response, request) =>
      answerAnyone(
        new Exchange(response, endpoints.length, isHead(request), frontEnd),
        request,
        root,
        anonymous,
      ),
    );
    const unknown = errorReply(new ApiError('route_not_found'), strictStatuses);
    const answerUnknown = (response: HttpResponse, request: HttpRequest): void => {
      const exchange = new Exchange(response, endpoints.length + 2, isHead(request), frontEnd);
      answerAnyone(exchange, request, unknown, anonymous);
    };
    app.post('/v1/claim', (response, request) => {
      if (!this.#context.config.claiming) return answerUnknown(response, request);
      const exchange = new Exchange(response, endpoints.length + 1, false, frontEnd);
      this.#guard(exchange, () => acceptClaim(this.#context, this.#claims, response, request, exchange));
    });
    app.any('/*', answerUnknown);
    return { app, frontEnd };
  }

  #register(app: App, frontEnd: FrontEnd, endpoint: Endpoint, index: number): void {
    const method = endpoint.method.toLowerCase() as 'get' | 'head' | 'post' | 'put';
    const hasParameter = endpoint.path.includes(':');
    app[method](endpoint.path, (response, request) => {
      const exchange = new Exchange(response, index, endpoint.method === 'HEAD', frontEnd);
      this.#guard(exchange, () => this.#accept(endpoint, hasParameter, response, request, exchange));
    });
  }

  #guard(exchange: Exchange, accept: () => void): void {
    try {
      accept();
    } catch (error) {
      refuse(exchange, error, this.#context.anonymous);
    }
    if (exchange.isOpen) exchange.defer();
  }

  /** Makes the checks in the order of decisions.md. Reads everything off the request before it returns. */
  #accept(
    endpoint: Endpoint,
    hasParameter: boolean,
    response: HttpResponse,
    request: HttpRequest,
    exchange: Exchange,
  ): void {
    const headers = new RequestHeaders(request);
    const declaredBytes = exchange.frame(headers);
    const input: RequestInput = {
      parameter: hasParameter ? (request.getParameter(0) ?? '') : '',
      query: endpoint.takesQuery ? (request.getQuery() ?? '') : '',
      headers,
      body: noBody,
    };
    const admit = (device: CachedDevice, nowMs: number): CachedDevice => {
      if (headers.traceparent !== '') {
        const elapsedMs = performance.now() - exchange.startedAtMs;
        exchange.trace = this.#context.spans?.begin(headers.traceparent, elapsedMs);
      }
      checkRate(device, this.#context, nowMs, declaredBytes);
      return device;
    };
    const found = authenticate(headers, this.#context, exchange);
    // Other requests may have been counted during an asynchronous lookup, so a start time would be in the bucket's past.
    const known =
      found instanceof Promise
        ? found.then((device) => admit(device, performance.now()))
        : admit(found, exchange.startedAtMs);
    if (known instanceof Promise) {
      this.#acceptLater(endpoint, known, input, declaredBytes, response, exchange);
      return;
    }
    exchange.deviceKey = known.device;
    const isWelcome = !endpoint.takesBody || isJson(headers.contentType);
    if (declaredBytes > 0 && !isWelcome) throw new ApiError('unsupported_media_type');
    if (endpoint.writes && !known.shard.accepts()) throw queueFull();
    if (declaredBytes === 0) {
      this.#handle(endpoint, known, input, exchange);
      return;
    }
    checkDeclared(declaredBytes, this.#bodies);
    const onBody = (body: Buffer): void => {
      input.body = body;
      try {
        if (body.length > 0 && !isWelcome) throw new ApiError('unsupported_media_type');
        if (declaredBytes < 0) checkBytes(known, this.#context, body.length);
        if (known.isValid) this.#handle(endpoint, known, input, exchange);
        else this.#reauthenticate(endpoint, input, exchange);
      } catch (error) {
        refuse(exchange, error, this.#context.anonymous);
      }
    };
    const onError = (error: ApiError): void =>
      exchange.fail(isWelcome ? error : new ApiError('unsupported_media_type'));
    exchange.body = new BodyReader(response, this.#bodies, exchange, onBody, onError);
  }

  /**
   * Accepts a request whose device is looked up asynchronously: its body is read meanwhile, because the library
   * delivers it now or never, and an error of the body is answered once the device is known.
   */
  #acceptLater(
    endpoint: Endpoint,
    known: Promise<CachedDevice>,
    input: RequestInput,
    declaredBytes: number,
    response: HttpResponse,
    exchange: Exchange,
  ): void {
    const isWelcome = !endpoint.takesBody || isJson(input.headers.contentType);
    const isUnread = declaredBytes === 0 || (declaredBytes > 0 && !isWelcome);
    const reading = isUnread ? undefined : arrivedBody(declaredBytes, response, this.#bodies, exchange);
    if (reading === undefined) exchange.waitsForEngineSinceMs = performance.now();
    // Its errors are answered below.
    else reading.catch(() => {});
    known
      .then(async (device) => {
        exchange.deviceKey = device.device;
        exchange.body?.assign(exchange.deviceKey);
        if (declaredBytes > 0 && !isWelcome) throw new ApiError('unsupported_media_type');
        if (endpoint.writes && !device.shard.accepts()) throw queueFull();
        const body = await reading?.catch((error: unknown) => {
          throw isWelcome ? error : new ApiError('unsupported_media_type');
        });
        input.body = body?.bytes ?? noBody;
        if (input.body.length > 0 && !isWelcome) throw new ApiError('unsupported_media_type');
        if (declaredBytes < 0) checkBytes(device, this.#context, input.body.length);
        // There is no change token here. A body that arrived with its head is no later than the device's lookup.
        if (body?.isLate) this.#reauthenticate(endpoint, input, exchange);
        else this.#handle(endpoint, device, input, exchange);
      })
      .catch((error: unknown) => refuse(exchange, error, this.#context.anonymous));
  }

  /** Authenticates again: while the body arrived, the device may have been disabled, re-keyed, or deleted and recreated. */
  #reauthenticate(endpoint: Endpoint, input: RequestInput, exchange: Exchange): void {
    if (!exchange.isOpen) return;
    const found = authenticate(input.headers, this.#context, exchange);
    if (!(found instanceof Promise)) {
      this.#handle(endpoint, found, input, exchange);
      return;
    }
    found
      .then((device) => this.#handle(endpoint, device, input, exchange))
      .catch((error: unknown) => refuse(exchange, error, this.#context.anonymous));
  }

  #handle(endpoint: Endpoint, device: CachedDevice, input: RequestInput, exchange: Exchange): void {
    this.#context.heartbeat();
    this.#context.activity.seen(device, exchange);
    this.#context.topTalkers.sample(device.device);
    if (exchange.trace !== undefined) {
      exchange.trace.attributes['fleetpost.fleet'] = device.fleetId;
      exchange.trace.attributes['fleetpost.device'] = device.deviceId;
    }
    const reply = endpoint.handle(new DeviceRequest(device, input), this.#context);
    if (reply instanceof Promise) {
      if (endpoint.writes) exchange.trace?.waits();
      reply.then(
        (later) => exchange.reply(later),
        (error: unknown) => exchange.fail(error),
      );
    } else exchange.reply(reply);
  }

  /** Answers requests that exceed their timeout with 503, rather than leaving the device hanging. */
  #watchPending(): void {
    const nowMs = performance.now();
    const { requestTimeoutSeconds, databaseTimeoutMilliseconds } = this.#context.config;
    const oldestMs = nowMs - requestTimeoutSeconds * 1_000;
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
