import type { ApiError } from '../../core/errors.ts';
import type { Exchange } from '../server/exchange.ts';
import type { HttpResponse } from '../uws/uws.ts';
import { type BodyLimits, BodyReader, checkDeclared } from './body.ts';

/** A copy of a body, valid beyond the event-loop turn it arrived in. */
export interface ArrivedBody {
  bytes: Buffer;
  /** Whether it was completed in a later turn of the event loop than its head. */
  isLate: boolean;
}

/** Reads a body while credentials are being looked up: uWebSockets.js delivers it now or never. */
export async function arrivedBody(
  declaredBytes: number,
  response: HttpResponse,
  limits: BodyLimits,
  exchange: Exchange,
): Promise<ArrivedBody> {
  checkDeclared(declaredBytes, limits);
  return new Promise((resolve, reject: (error: ApiError) => void) => {
    let isLate = false;
    setImmediate(() => {
      isLate = true;
    });
    const onBody = (bytes: Buffer): void => {
      exchange.waitsForEngineSinceMs = performance.now();
      resolve({ bytes: Buffer.from(bytes), isLate });
    };
    exchange.body = new BodyReader(response, limits, exchange, onBody, reject);
  });
}
