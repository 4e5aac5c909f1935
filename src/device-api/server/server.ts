import { sleep } from '../../core/async.ts';
import { ApiError, queueFull, unavailable } from '../../core/errors.ts';
import { authenticate } from '../auth/authentication.ts';
import type { CachedDevice } from '../auth/cached-device.ts';
import { arrivedBody } from '../body/arrived-body.ts';
import { type BodyLimits, BodyReader, bodyLimits, checkDeclared } from '../body/body.ts';
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

/** An app with one certificate, and what its exchanges share. */
interface FrontApp {
  readonly app: App;
  readonly frontEnd: FrontEnd;
}

/** Apps with an earlier certificate whose connections live on; of one more, the oldest has to go. */
const earlierMax = 2;
/** Time that the connections of one that goes have to end by themselves: the library's idle timer has it too. */
const leaveMs = 15_000;

/**
 * The apps of a front end, oldest first: the last gets the new connections, those before it keep theirs for as
 * long as these last. One that has to go ends each connection with its next answer, and then closes what is
 * left: idle connections, and event streams, whose devices open them again.
 */
class FrontApps {
  readonly #apps: FrontApp[] = [];
  #leaving: { one: FrontApp; closeAtMs: number } | undefined;

  add(one: FrontApp): void {
    this.#apps.push(one);
    if (this.#apps.length <= earlierMax + 1) return;
    // Two at once, so that what renewals hold is bounded however fast they come.
    this.#close();
    const oldest = this.#apps.shift() as FrontApp;
    oldest.frontEnd.isClosing = true;
    this.#leaving = { one: oldest, closeAtMs: performance.now() + leaveMs };
  }

  all(): readonly FrontApp[] {
    return this.#leaving === undefined ? this.#apps : [this.#leaving.one, ...this.#apps];
  }

  /** To be called every second. */
  closeLeft(nowMs: number): void {
    if (this.#leaving === undefined || nowMs < this.#leaving.closeAtMs) return;
    if (this.#leaving.one.frontEnd.pending.size === 0) this.#close();
  }

  #close(): void {
    this.#leaving?.one.app.close();
    this.#leaving = undefined;
  }
}

/** Names of all routes, as metrics count them; the last is what no route matched. */
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

/** Largest body of a claim: three ids, a token and a name have room in it four times. */
const claimBytesMax = 4_096;
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
    this.#bodies = bodyLimits(context.config, context.config.bodyBytesMax, 'bodyMemoryBytesMax');
    this.#claims = bodyLimits(context.config, claimBytesMax, 'claimMemoryBytesMax');
    this.#turn = new TurnBudget(context.beat);
    // Leaves the library's name out of every response.
    uws._cfg('silent');
    this.renewCertificate(tls);
    this.#deadline = setInterval(() => this.#watchPending(), 1_000);
  }

  get descriptor(): AppDescriptor {
    return (this.#apps.all().at(-1) as FrontApp).app.getDescriptor();
  }

  /**
   * Answers the descriptor that new connections are to be dealt to. Those that are there go on where they are:
   * the library cannot change the certificate of an app that serves.
   * @throws Error when the TLS library does not take the files.
   */
  renewCertificate(tls: TlsFiles): AppDescriptor {
    this.#apps.add(this.#open(tls));
    return this.descriptor;
  }

  /** Waits for requests in flight, at most `seconds`, then closes every connection. */
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

  /** The order of checks of decisions.md. Everything is read off the request before this returns. */
  #accept(
    endpoint: Endpoint,
    hasParameter: boolean,
    response: HttpResponse,
    request: HttpRequest,
    exchange: Exchange,
  ): void {
    const headers = new RequestHeaders(request);
    const declaredBytes = exchange.frame(headers);
    const given: RequestInput = {
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
    // Others may have been counted while the engine took its time: by the time of its start it would be one of too many.
    const known =
      found instanceof Promise
        ? found.then((device) => admit(device, performance.now()))
        : admit(found, exchange.startedAtMs);
    if (known instanceof Promise) {
      this.#acceptLater(endpoint, known, given, declaredBytes, response, exchange);
      return;
    }
    exchange.known = known.device;
    const isWelcome = !endpoint.takesBody || isJson(headers.contentType);
    if (declaredBytes > 0 && !isWelcome) throw new ApiError('unsupported_media_type');
    if (endpoint.writes && !known.shard.accepts()) throw queueFull();
    if (declaredBytes === 0) {
      this.#handle(endpoint, known, given, exchange);
      return;
    }
    checkDeclared(declaredBytes, this.#bodies);
    const onBody = (body: Buffer): void => {
      given.body = body;
      try {
        if (body.length > 0 && !isWelcome) throw new ApiError('unsupported_media_type');
        if (declaredBytes < 0) checkBytes(known, this.#context, body.length);
        if (known.isValid) this.#handle(endpoint, known, given, exchange);
        else this.#handleAnew(endpoint, given, exchange);
      } catch (error) {
        refuse(exchange, error, this.#context.anonymous);
      }
    };
    const onError = (error: ApiError): void =>
      exchange.fail(isWelcome ? error : new ApiError('unsupported_media_type'));
    exchange.body = new BodyReader(response, this.#bodies, exchange, onBody, onError);
  }

  /**
   * The same where the engine takes its time to know the device: its body is read meanwhile, since the library gives
   * it now or never, and whatever is wrong with that is told once the device is known.
   */
  #acceptLater(
    endpoint: Endpoint,
    known: Promise<CachedDevice>,
    given: RequestInput,
    declaredBytes: number,
    response: HttpResponse,
    exchange: Exchange,
  ): void {
    const isWelcome = !endpoint.takesBody || isJson(given.headers.contentType);
    const isUnread = declaredBytes === 0 || (declaredBytes > 0 && !isWelcome);
    const reading = isUnread ? undefined : arrivedBody(declaredBytes, response, this.#bodies, exchange);
    if (reading === undefined) exchange.waitsForEngineSinceMs = performance.now();
    // Whatever is wrong with it is told below.
    else reading.catch(() => {});
    known
      .then(async (device) => {
        exchange.known = device.device;
        exchange.body?.belongTo(exchange.known);
        if (declaredBytes > 0 && !isWelcome) throw new ApiError('unsupported_media_type');
        if (endpoint.writes && !device.shard.accepts()) throw queueFull();
        const body = await reading?.catch((error: unknown) => {
          throw isWelcome ? error : new ApiError('unsupported_media_type');
        });
        given.body = body?.bytes ?? noBody;
        if (given.body.length > 0 && !isWelcome) throw new ApiError('unsupported_media_type');
        if (declaredBytes < 0) checkBytes(device, this.#context, given.body.length);
        // Nothing tells here whether the device has changed: it was read no earlier than what came with its head.
        if (body?.isLate) this.#handleAnew(endpoint, given, exchange);
        else this.#handle(endpoint, device, given, exchange);
      })
      .catch((error: unknown) => refuse(exchange, error, this.#context.anonymous));
  }

  /** While its body was on its way the device may have been disabled, re-keyed, or deleted and made anew. */
  #handleAnew(endpoint: Endpoint, given: RequestInput, exchange: Exchange): void {
    if (!exchange.isOpen) return;
    const found = authenticate(given.headers, this.#context, exchange);
    if (!(found instanceof Promise)) {
      this.#handle(endpoint, found, given, exchange);
      return;
    }
    found
      .then((device) => this.#handle(endpoint, device, given, exchange))
      .catch((error: unknown) => refuse(exchange, error, this.#context.anonymous));
  }

  #handle(endpoint: Endpoint, device: CachedDevice, given: RequestInput, exchange: Exchange): void {
    this.#context.beat();
    this.#context.activity.seen(device, exchange);
    this.#context.talkers.sample(device.device);
    if (exchange.trace !== undefined) {
      exchange.trace.attributes['fleetpost.fleet'] = device.fleetId;
      exchange.trace.attributes['fleetpost.device'] = device.deviceId;
    }
    const reply = endpoint.handle(new DeviceRequest(device, given), this.#context);
    if (reply instanceof Promise) {
      if (endpoint.writes) exchange.trace?.waits();
      reply.then(
        (later) => exchange.reply(later),
        (error: unknown) => exchange.fail(error),
      );
    } else exchange.reply(reply);
  }

  /** Nothing should take this long; should it, the device is told rather than left hanging. */
  #watchPending(): void {
    const nowMs = performance.now();
    const { requestTimeoutSeconds, databaseTimeoutMilliseconds } = this.#context.config;
    const oldestMs = nowMs - requestTimeoutSeconds * 1_000;
    const longestMs = nowMs - databaseTimeoutMilliseconds;
    for (const { frontEnd } of this.#apps.all()) {
      for (const exchange of frontEnd.pending.all()) {
        exchange.body?.watch(nowMs);
        if (exchange.startedAtMs < oldestMs) {
          exchange.fail(unavailable('The request took too long (requestTimeoutSeconds).'));
        } else if (exchange.waitsForEngineSinceMs < longestMs) {
          // Its statements have deadlines of their own, and there are several behind each other.
          exchange.fail(unavailable('The database is too slow (databaseTimeoutMilliseconds).'));
        }
      }
    }
    this.#apps.closeLeft(nowMs);
  }
}
