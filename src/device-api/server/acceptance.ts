import { ApiError, type ErrorCode, queueFull } from '../../core/errors.ts';
import type { AnonymousRate } from '../auth/anonymous-rate.ts';
import { authenticate } from '../auth/authentication.ts';
import type { CachedDevice } from '../auth/cached-device.ts';
import { type BodyLimits, BodyReader, type BodyTaker, refusalOfLength } from '../body/body.ts';
import { checkBytes, checkRate } from '../limits/rate-limit.ts';
import type { HttpRequest, HttpResponse } from '../uws/uws.ts';
import type { HttpContext } from './context.ts';
import { DeviceRequest, type Endpoint, type OpenEndpoint, type RequestInput } from './endpoint.ts';
import type { Exchange } from './exchange.ts';
import { noteAccepted, noteRefusal } from './note-refusal.ts';
import { type Reply, withMailbox } from './reply.ts';
import { isJson, RequestHeaders } from './request-headers.ts';

/** Errors of unauthenticated clients, whose requests no device's limit counts. */
const anonymousCodes: readonly ErrorCode[] = ['malformed_credentials', 'unauthorized', 'fleet_host_mismatch'];

const noBody = Buffer.alloc(0);

/** A route as the front end serves it. */
export interface ServedRoute {
  readonly endpoint: Endpoint | OpenEndpoint;
  readonly context: HttpContext;
  readonly bodies: BodyLimits;
  /** Index of its kind in the pulse of a fleet. */
  readonly pulseKind: number;
}

/**
 * Accepts one request: makes the checks in the order of decisions.md, from top to bottom of this class, as the device
 * and the body become known. LMDB knows the device at once, a database later; a body may come with its head or later.
 * Each step calls the next one, or leaves that to whatever it waits for: no promise is made for a device that is known.
 */
export class Acceptance implements BodyTaker {
  readonly #route: ServedRoute;
  readonly #response: HttpResponse;
  readonly #exchange: Exchange;
  readonly #input: RequestInput;
  /** 0 for none, `chunked` if unknown before its end. */
  #declaredBytes = 0;
  #device: CachedDevice | undefined;
  /** True if every check before the body has passed. */
  #isAdmitted = false;
  /** The body, or why it could not be read; undefined while it is awaited. */
  #body: Buffer | ApiError | undefined;
  /** True if the device may have changed between its lookup and the end of the body. */
  #isLate = true;
  /** Set while the body may still arrive in the turn of its head. */
  #turn: NodeJS.Immediate | undefined;

  /** Reads everything off the request, which is gone once its handler returns. */
  constructor(route: ServedRoute, request: HttpRequest, response: HttpResponse, exchange: Exchange) {
    const { path, takesQuery } = route.endpoint;
    this.#route = route;
    this.#response = response;
    this.#exchange = exchange;
    this.#input = {
      parameter: path.includes(':') ? (request.getParameter(0) ?? '') : '',
      query: takesQuery ? (request.getQuery() ?? '') : '',
      headers: new RequestHeaders(request),
      body: noBody,
    };
  }

  /** The route exists. Checks framing (D9), then credentials (section 5): 400, 401 (D4, D5), or 429 (D6). */
  start(): void {
    const { endpoint, context } = this.#route;
    const exchange = this.#exchange;
    try {
      this.#declaredBytes = exchange.frame(this.#input.headers);
      if (endpoint.isOpen) this.#checkHead(undefined);
      else {
        const found = authenticate(this.#input.headers, context, exchange);
        if (found instanceof Promise) this.#awaitDevice(found);
        else this.#admit(found, exchange.startedAtMs);
      }
    } catch (error) {
      this.#refuse(error);
    }
    if (exchange.isOpen) exchange.defer();
  }

  /** Reads the body meanwhile, because the library delivers it now or never; its errors wait for the device too. */
  #awaitDevice(found: Promise<CachedDevice>): void {
    if (this.#declaredBytes === 0) this.#exchange.waitsForEngineSinceMs = performance.now();
    else {
      // A body that arrives with its head is no later than the lookup.
      this.#isLate = false;
      this.#turn = setImmediate(() => {
        this.#isLate = true;
      });
      this.#readBody();
    }
    found
      // Other requests may have been counted during the lookup, so a start time would be in the bucket's past.
      .then((device) => this.#admit(device, performance.now()))
      .catch((error: unknown) => this.#refuse(error));
  }

  /** Checks the rates of the device and its fleet: 429 (D7). */
  #admit(device: CachedDevice, nowMs: number): void {
    const exchange = this.#exchange;
    const { traceparent } = this.#input.headers;
    if (traceparent !== '') {
      const elapsedMs = performance.now() - exchange.startedAtMs;
      exchange.trace = this.#route.context.spans?.begin(traceparent, elapsedMs);
    }
    this.#device = device;
    checkRate(device, this.#route.context, nowMs, this.#declaredBytes);
    exchange.deviceKey = device.device;
    exchange.body?.assign(device.device);
    this.#checkHead(device);
  }

  /** Checks the content type: 415 (D10); then whether its shard takes writes: 503, before the body is read. */
  #checkHead(device: CachedDevice | undefined): void {
    if (this.#declaredBytes > 0) this.#checkContentType();
    if (this.#route.endpoint.writes && device?.shard.accepts() === false) throw queueFull();
    this.#isAdmitted = true;
    if (this.#declaredBytes === 0) this.#handle(device);
    else if (this.#exchange.body === undefined && this.#body === undefined) this.#readBody();
    else this.#checkBody();
  }

  #checkContentType(): void {
    const isWelcome = !this.#route.endpoint.takesBody || isJson(this.#input.headers.contentType);
    if (!isWelcome) throw new ApiError('unsupported_media_type');
  }

  #readBody(): void {
    const { bodies } = this.#route;
    const tooLong = refusalOfLength(this.#declaredBytes, bodies);
    if (tooLong !== undefined) this.onBody(tooLong);
    else this.#exchange.body = new BodyReader(this.#response, bodies, this.#exchange, this);
  }

  /** Takes the body, or why it could not be read. Its bytes are valid until this returns. */
  onBody(body: Buffer | ApiError): void {
    if (this.#turn !== undefined) {
      clearImmediate(this.#turn);
      this.#exchange.waitsForEngineSinceMs = performance.now();
    }
    this.#body = this.#isAdmitted || body instanceof ApiError ? body : Buffer.from(body);
    try {
      this.#checkBody();
    } catch (error) {
      this.#refuse(error);
    }
  }

  onFlood(error: ApiError): void {
    const { endpoint, context } = this.#route;
    const exchange = this.#exchange;
    noteRefusal(context, error, { device: this.#device?.device, endpoint, input: this.#input, exchange });
    exchange.cutOff(error);
  }

  onFloodEnd(): void {
    this.#exchange.endBody();
  }

  /**
   * Checks, once device and body are known, the body's type again, since a chunked one is seen only now: 415; its
   * size and time: 413, 400 (D9, D22); the rate of a chunked body's bytes: 429; and the credentials again if it came
   * later: the device may have been disabled, re-keyed, or deleted and recreated.
   */
  #checkBody(): void {
    const body = this.#body;
    const device = this.#device;
    if (!this.#isAdmitted || body === undefined) return;
    const isError = body instanceof ApiError;
    if (this.#declaredBytes < 0 && (isError || body.length > 0)) this.#checkContentType();
    if (isError) throw body;
    this.#input.body = body;
    if (device !== undefined && this.#declaredBytes < 0) checkBytes(device, this.#route.context, body.length);
    if (device === undefined || device.isValid || !this.#isLate) this.#handle(device);
    else this.#authenticateAgain();
  }

  #authenticateAgain(): void {
    if (!this.#exchange.isOpen) return;
    const found = authenticate(this.#input.headers, this.#route.context, this.#exchange);
    if (!(found instanceof Promise)) this.#handle(found);
    else found.then((device) => this.#handle(device)).catch((error: unknown) => this.#refuse(error));
  }

  /** The endpoint checks the body's content, its schema and the idempotency key, in this order (D10, D12, D18). */
  #handle(device: CachedDevice | undefined): void {
    const { endpoint, context } = this.#route;
    if (endpoint.isOpen) this.#reply(endpoint.handle(this.#input, this.#exchange, context));
    else if (device !== undefined) {
      const { trace } = this.#exchange;
      context.heartbeat();
      context.activity.seen(device, this.#exchange);
      context.topTalkers.sample(device.device);
      if (trace !== undefined) {
        trace.attributes['fleetpost.fleet'] = device.fleetId;
        trace.attributes['fleetpost.device'] = device.deviceId;
      }
      this.#reply(endpoint.handle(new DeviceRequest(device, this.#input, this.#exchange), context));
    }
  }

  #reply(reply: Reply | Promise<Reply>): void {
    const exchange = this.#exchange;
    if (!(reply instanceof Promise)) {
      this.#accept(reply);
      return;
    }
    if (this.#route.endpoint.writes) exchange.trace?.waits();
    reply.then(
      (later) => this.#accept(later),
      (error: unknown) => this.#refuse(error),
    );
  }

  #accept(reply: Reply): void {
    const { endpoint, context, pulseKind } = this.#route;
    const cached = this.#device;
    if (cached === undefined) {
      this.#exchange.reply(reply);
      return;
    }
    context.pulses.accepted(cached, pulseKind);
    noteAccepted(context.refusals, { device: cached.device, endpoint, input: this.#input });
    if (reply.tellsMailbox || reply.stream !== undefined) this.#exchange.reply(reply);
    else this.#replyWithMailbox(reply, cached);
  }

  /**
   * Tells the size of the mailbox (D28). Where that cannot be read, what was written is written, and answered without it:
   * its device would send it again.
   */
  #replyWithMailbox(reply: Reply, cached: CachedDevice): void {
    const exchange = this.#exchange;
    const fail = (error: unknown): void => {
      if (this.#route.endpoint.writes) exchange.reply(reply);
      else this.#refuse(error);
    };
    try {
      const size = cached.mailboxSize();
      if (typeof size === 'number') exchange.reply(withMailbox(reply, size));
      else size.then((later) => exchange.reply(withMailbox(reply, later)), fail);
    } catch (error) {
      fail(error);
    }
  }

  /**
   * Answers an error: at once, or as `Exchange.refuse` and `Exchange.hold` explain. Of an unauthenticated client it is
   * counted against its address; only after the check, because behind the same NAT others have valid credentials.
   */
  #refuse(cause: unknown): void {
    const { endpoint, context } = this.#route;
    const exchange = this.#exchange;
    let error = cause;
    const device = this.#device?.device;
    noteRefusal(context, cause, { device, endpoint, input: this.#input, exchange });
    if (error instanceof ApiError && error.options.closeConnection) {
      exchange.refuse(error);
      return;
    }
    const isAnonymous = error instanceof ApiError && anonymousCodes.includes(error.code);
    if (endpoint.isOpen || isAnonymous) error = context.anonymous.refusal(exchange) ?? error;
    if (error instanceof ApiError && error.code === 'rate_limited') exchange.hold(error);
    else exchange.fail(error);
  }
}

/** Answers a route that has neither credentials nor a body, after the checks of framing (D9) and of the address's rate. */
export function answerAnyone(
  exchange: Exchange,
  request: HttpRequest,
  reply: Reply,
  anonymous: AnonymousRate,
): void {
  try {
    exchange.frame(new RequestHeaders(request));
  } catch (error) {
    exchange.refuse(error);
    return;
  }
  const refusal = anonymous.refusal(exchange);
  if (refusal === undefined) exchange.reply(reply);
  else exchange.hold(refusal);
}
