import { ApiError, type ErrorCode } from '../../core/errors.ts';
import type { AnonymousRate } from '../auth/anonymous-rate.ts';
import type { HttpRequest } from '../uws/uws.ts';
import type { Exchange } from './exchange.ts';
import type { Reply } from './reply.ts';
import { RequestHeaders } from './request-headers.ts';

/** Answers a route without credentials, unless the request's framing is ambiguous or its address is rate-limited. */
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

/** Errors of unauthenticated clients, whose requests no device's limit counts. */
const anonymousCodes: readonly ErrorCode[] = ['malformed_credentials', 'unauthorized', 'fleet_host_mismatch'];

/** Refuses a request before it is handled: at once, or as `Exchange.refuse` and `Exchange.hold` explain. */
export function refuse(exchange: Exchange, cause: unknown, anonymous: AnonymousRate): void {
  let error = cause;
  if (error instanceof ApiError && anonymousCodes.includes(error.code))
    error = anonymous.refusal(exchange) ?? error;
  if (error instanceof ApiError && error.options.closeConnection) exchange.refuse(error);
  else if (error instanceof ApiError && error.code === 'rate_limited') exchange.hold(error);
  else exchange.fail(error);
}
