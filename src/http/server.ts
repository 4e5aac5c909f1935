import { ApiError, queueFull, unavailable } from '../core/errors.ts';
import { authenticate } from './authentication.ts';
import { BodyReader, checkDeclared } from './body.ts';
import { BodyMemory, bodiesFull } from './body-memory.ts';
import { acceptClaim } from './claim.ts';
import { isJson } from './content-type.ts';
import type { HttpContext } from './context.ts';
import { DeviceRequest, type Endpoint, type Given } from './endpoint.ts';
import { endpoints } from './endpoints/index.ts';
import { Exchange, type FrontEnd, PendingExchanges } from './exchange.ts';
import { type FrontApp, FrontApps } from './front-apps.ts';
import type { KnownDevice } from './known-device.ts';
import { checkRate } from './rate-limit.ts';
import { createReply, errorReply, type Reply } from './reply.ts';
import { RequestHeaders } from './request-headers.ts';
import {
  type App,
  type AppDescriptor,
  createApp,
  type HttpRequest,
  type HttpResponse,
  type TlsFiles,
  uws,
} from './uws.ts';

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

const noBody = Buffer.alloc(0);

const drainPollMs = 20;

/** The front end of one worker: the device API on apps without a listener of their own. */
export class DeviceServer {
  readonly #context: HttpContext;
  readonly #bodyMemory: BodyMemory;
  readonly #apps = new FrontApps();
  readonly #deadline: NodeJS.Timeout;

  constructor(context: HttpContext, tls: TlsFiles) {
    this.#context = context;
    this.#bodyMemory = new BodyMemory(context.config.bodyMemoryBytesMax);
    // Leaves the library's name out of every response.
    (uws as unknown as { _cfg(option: string): void })._cfg('silent');
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
      await new Promise((resolve) => setTimeout(resolve, drainPollMs));
    }
    clearInterval(this.#deadline);
    for (const { app } of this.#apps.all()) app.close();
  }

  #open(tls: TlsFiles): FrontApp {
    const { config, metrics, log } = this.#context;
    const { strictStatuses } = config;
    const pending = new PendingExchanges();
    const bodyMemory = this.#bodyMemory;
    const frontEnd = { strictStatuses, metrics, log, routeNames, pending, bodyMemory, isClosing: false };
    const app = createApp(tls);
    this.#context.connections.watch(app);
    for (const [index, endpoint] of endpoints.entries()) this.#register(app, frontEnd, endpoint, index);
    app.get('/', (response, request) =>
      this.#answerAnyone(new Exchange(response, endpoints.length, isHead(request), frontEnd), request, root),
    );
    const unknown = errorReply(new ApiError('route_not_found'), strictStatuses);
    const answerUnknown = (response: HttpResponse, request: HttpRequest): void => {
      const exchange = new Exchange(response, endpoints.length + 2, isHead(request), frontEnd);
      this.#answerAnyone(exchange, request, unknown);
    };
    app.post('/v1/claim', (response, request) => {
      if (!this.#context.config.claiming) return answerUnknown(response, request);
      const exchange = new Exchange(response, endpoints.length + 1, false, frontEnd);
      this.#guard(exchange, () => acceptClaim(this.#context, this.#bodyMemory, response, request, exchange));
    });
    app.any('/*', answerUnknown);
    return { app, frontEnd };
  }

  /** Routes without credentials: the same answer for all, unless it is unclear where the request ends. */
  #answerAnyone(exchange: Exchange, request: HttpRequest, reply: Reply): void {
    try {
      // Throws for a request that can be read in two ways.
      new RequestHeaders(request).bodyBytes;
      exchange.reply(reply);
    } catch (error) {
      exchange.refuse(error);
    }
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
      refuse(exchange, error);
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
    const declaredBytes = headers.bodyBytes;
    const given: Given = {
      parameter: hasParameter ? (request.getParameter(0) ?? '') : '',
      query: endpoint.takesQuery ? (request.getQuery() ?? '') : '',
      headers,
      body: noBody,
    };
    const admit = (device: KnownDevice, nowMs: number): KnownDevice => {
      if (headers.traceparent !== '') {
        const elapsedMs = performance.now() - exchange.startedAtMs;
        exchange.trace = this.#context.spans?.begin(headers.traceparent, elapsedMs);
      }
      checkRate(device, this.#context, nowMs);
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
    const isWelcome = !endpoint.takesBody || isJson(headers.contentType);
    if (declaredBytes > 0 && !isWelcome) throw new ApiError('unsupported_media_type');
    if (endpoint.writes && !known.shard.accepts()) throw queueFull();
    if (declaredBytes === 0) {
      this.#handle(endpoint, known, given, exchange);
      return;
    }
    this.#checkBody(declaredBytes);
    const onBody = (body: Buffer): void => {
      given.body = body;
      try {
        if (body.length > 0 && !isWelcome) throw new ApiError('unsupported_media_type');
        this.#handle(endpoint, known, given, exchange);
      } catch (error) {
        exchange.fail(error);
      }
    };
    const onError = (error: ApiError): void =>
      exchange.fail(isWelcome ? error : new ApiError('unsupported_media_type'));
    exchange.body = new BodyReader(response, this.#context.config, this.#bodyMemory, onBody, onError);
  }

  /**
   * The same where the engine takes its time to know the device: its body is read meanwhile, since the library gives
   * it now or never, and whatever is wrong with that is told once the device is known.
   */
  #acceptLater(
    endpoint: Endpoint,
    known: Promise<KnownDevice>,
    given: Given,
    declaredBytes: number,
    response: HttpResponse,
    exchange: Exchange,
  ): void {
    const isWelcome = !endpoint.takesBody || isJson(given.headers.contentType);
    const reading = this.#readBody(declaredBytes, isWelcome, response, exchange);
    // Whatever it is, it is told below.
    reading.catch(() => {});
    known
      .then(async (device) => {
        if (declaredBytes > 0 && !isWelcome) throw new ApiError('unsupported_media_type');
        if (endpoint.writes && !device.shard.accepts()) throw queueFull();
        given.body = await reading;
        if (given.body.length > 0 && !isWelcome) throw new ApiError('unsupported_media_type');
        this.#handle(endpoint, device, given, exchange);
      })
      .catch((error: unknown) => refuse(exchange, error));
  }

  /** Settles with a copy of it, or as what is wrong with it. */
  async #readBody(
    declaredBytes: number,
    isWelcome: boolean,
    response: HttpResponse,
    exchange: Exchange,
  ): Promise<Buffer> {
    if (declaredBytes === 0) return noBody;
    if (declaredBytes > 0 && !isWelcome) return noBody;
    this.#checkBody(declaredBytes);
    return new Promise((resolve, reject) => {
      const onError = (error: ApiError): void =>
        reject(isWelcome ? error : new ApiError('unsupported_media_type'));
      const onBody = (body: Buffer): void => resolve(Buffer.from(body));
      exchange.body = new BodyReader(response, this.#context.config, this.#bodyMemory, onBody, onError);
    });
  }

  /** Before any of it is read. @throws ApiError request_too_large, unavailable. */
  #checkBody(declaredBytes: number): void {
    checkDeclared(declaredBytes, this.#context.config);
    if (this.#bodyMemory.isFull) throw bodiesFull();
  }

  #handle(endpoint: Endpoint, device: KnownDevice, given: Given, exchange: Exchange): void {
    this.#context.activity.seen(device, exchange);
    this.#context.talkers.heard(device.device);
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
    const oldestMs = nowMs - this.#context.config.requestTimeoutSeconds * 1_000;
    for (const { frontEnd } of this.#apps.all()) {
      for (const exchange of frontEnd.pending.all()) {
        exchange.body?.watch(nowMs);
        if (exchange.startedAtMs < oldestMs) {
          exchange.fail(unavailable('The request took too long (requestTimeoutSeconds).'));
        }
      }
    }
    this.#apps.closeLeft(nowMs);
  }
}

/** As an answer, at once; but see what each of the two others is for. */
function refuse(exchange: Exchange, error: unknown): void {
  if (error instanceof ApiError && error.options.closeConnection) exchange.refuse(error);
  else if (error instanceof ApiError && error.code === 'rate_limited') exchange.hold(error);
  else exchange.fail(error);
}
