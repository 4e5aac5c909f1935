import { ApiError, type ErrorCode } from '../../core/errors.ts';
import type { AnonymousRate } from '../auth/anonymous-rate.ts';
import type { HttpRequest } from '../uws/uws.ts';
import type { Exchange } from './exchange.ts';
import type { Reply } from './reply.ts';
import { RequestHeaders } from './request-headers.ts';

/** Routes without credentials: the same answer for all, unless it is unclear where the request ends. */
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

/** Of callers of whom nothing is known: no device's limit counts their requests. */
const anonymousCodes: readonly ErrorCode[] = ['malformed_credentials', 'unauthorized', 'fleet_host_mismatch'];

/** Refuses a request before it is handled: as an answer, at once; but see what each of the two others is for. */
export function refuse(exchange: Exchange, cause: unknown, anonymous: AnonymousRate): void {
  let error = cause;
  if (error instanceof ApiError && anonymousCodes.includes(error.code))
    error = anonymous.refusal(exchange) ?? error;
  if (error instanceof ApiError && error.options.closeConnection) exchange.refuse(error);
  else if (error instanceof ApiError && error.code === 'rate_limited') exchange.hold(error);
  else exchange.fail(error);
}
