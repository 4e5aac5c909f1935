import { ApiError, queueFull, unavailable } from '../core/errors.ts';
import { fleetIdOf } from '../core/identity.ts';
import type { Awaitable } from '../shard/shard.ts';
import { authenticate } from './authentication.ts';
import { readBody } from './body.ts';
import type { HttpContext } from './context.ts';
import type { Endpoint } from './endpoint.ts';
import { endpoints } from './endpoints/index.ts';
import { Exchange } from './exchange.ts';
import { checkFraming, chunked } from './framing.ts';
import type { Reply } from './reply.ts';
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
  'unknown',
];

/** D23. */
const root: Reply = {
  status: 200,
  body: '{"fostrom":true,"endpoint":"device","latest_endpoint_version":1}',
};

const drainPollMs = 20;

/** The front end of one worker: the device API on an app without a listener of its own. */
export class DeviceServer {
  readonly #app: App;
  readonly #context: HttpContext;
  readonly #pending = new Set<Exchange>();
  readonly #deadline: NodeJS.Timeout;

  constructor(context: HttpContext, tls: TlsFiles) {
    this.#context = context;
    // Leaves the library's name out of every response.
    (uws as unknown as { _cfg(option: string): void })._cfg('silent');
    this.#app = createApp(tls);
    for (const [index, endpoint] of endpoints.entries()) this.#register(endpoint, index);
    this.#app.get('/', (response) => {
      this.#exchange(response, endpoints.length, false).reply(root);
    });
    this.#app.any('/*', (response, request) => {
      const exchange = this.#exchange(response, endpoints.length + 1, request.getMethod() === 'head');
      exchange.fail(new ApiError('route_not_found'));
    });
    this.#deadline = setInterval(() => this.#failOverdue(), 1_000);
  }

  get descriptor(): AppDescriptor {
    return this.#app.getDescriptor();
  }

  /** Waits for requests in flight, at most `seconds`, then closes every connection. */
  async close(seconds: number): Promise<void> {
    const endMs = performance.now() + seconds * 1_000;
    while (this.#pending.size > 0 && performance.now() < endMs) {
      await new Promise((resolve) => setTimeout(resolve, drainPollMs));
    }
    clearInterval(this.#deadline);
    this.#app.close();
  }

  #register(endpoint: Endpoint, index: number): void {
    const method = endpoint.method.toLowerCase() as 'get' | 'head' | 'post' | 'put';
    this.#app[method](endpoint.path, (response, request) => {
      const exchange = this.#exchange(response, index, endpoint.method === 'HEAD');
      try {
        const reply = this.#answer(endpoint, response, request, exchange);
        if (!(reply instanceof Promise)) return exchange.reply(reply);
        this.#pending.add(exchange);
        exchange.onClose(() => this.#pending.delete(exchange));
        reply.then(
          (later) => exchange.reply(later),
          (error: unknown) => exchange.fail(error),
        );
      } catch (error) {
        exchange.fail(error);
      }
    });
  }

  #exchange(response: HttpResponse, routeIndex: number, isHead: boolean): Exchange {
    const { config, log, metrics } = this.#context;
    return new Exchange(response, routeIndex, isHead, config.strictStatuses, metrics, log);
  }

  /** The order of checks of decisions.md. Everything is read off the request before this returns. */
  #answer(
    endpoint: Endpoint,
    response: HttpResponse,
    request: HttpRequest,
    exchange: Exchange,
  ): Awaitable<Reply> {
    const declaredBytes = checkFraming(request);
    const contentType = endpoint.takesBody ? request.getHeader('content-type') : '';
    const given = {
      parameter: endpoint.path.includes(':') ? (request.getParameter(0) ?? '') : '',
      query: request.getQuery() ?? '',
      header: endpoint.header === undefined ? '' : request.getHeader(endpoint.header),
    };
    const device = authenticate(request, this.#context);
    if (endpoint.takesBody && declaredBytes > 0) checkContentType(contentType);
    const body = declaredBytes === 0 ? noBody : this.#body(response, declaredBytes, exchange);
    return then(device, (known) => {
      this.#context.activity.seen(known);
      const shard = this.#context.shards.of(known);
      if (endpoint.writes && !shard.accepts()) throw queueFull();
      return then(body, (bytes) => {
        if (endpoint.takesBody && declaredBytes === chunked && bytes.length > 0)
          checkContentType(contentType);
        const fleetId = fleetIdOf(known);
        return endpoint.handle({ device: known, fleetId, shard, ...given, body: bytes }, this.#context);
      });
    });
  }

  #body(response: HttpResponse, declaredBytes: number, exchange: Exchange): Promise<Buffer> {
    const { bodyBytesMax, bodyTimeoutSeconds } = this.#context.config;
    const limits = { bytesMax: bodyBytesMax, timeoutSeconds: bodyTimeoutSeconds };
    const body = readBody(response, declaredBytes, limits, (cancel) => exchange.onClose(cancel));
    // Answered before its body was read, a request leaves nobody to hear that the body failed too.
    body.catch(() => {});
    return body;
  }

  /** Nothing should take this long; should it, the device is told rather than left hanging. */
  #failOverdue(): void {
    const oldestMs = performance.now() - this.#context.config.requestTimeoutSeconds * 1_000;
    for (const exchange of this.#pending) {
      if (exchange.startedAtMs < oldestMs) {
        exchange.fail(unavailable('The request took too long (requestTimeoutSeconds).'));
      }
    }
  }
}

const noBody = Buffer.alloc(0);

/** Goes on at once with a value that is there: no promise on the hot path. */
function then<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** D10: application/json, with or without parameters. */
function checkContentType(contentType: string): void {
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/json') throw new ApiError('unsupported_media_type');
}
