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
