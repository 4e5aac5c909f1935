import { ApiError } from '../core/errors.ts';
import type { HttpResponse } from './uws.ts';

/** What is beyond a body's limit is read and dropped up to here, so that every client sees its 413 (D9). */
const discardBytesMax = 1024 * 1024;

export interface BodyLimits {
  bytesMax: number;
  timeoutSeconds: number;
}

const tooLarge = (limit: number): ApiError =>
  new ApiError('request_too_large', { msg: `The body is larger than ${limit} bytes (bodyBytesMax).` });

/**
 * Collects a request body. Must be called before the handler returns.
 * @throws ApiError request_too_large; bad_request when it takes longer than its time, closing the connection.
 */
export function readBody(
  response: HttpResponse,
  declaredBytes: number,
  limits: BodyLimits,
  onCancel: (cancel: () => void) => void,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let received = 0;
    let timer: NodeJS.Timeout | undefined;
    let done = false;
    const finish = (settle: () => void): void => {
      if (done) return;
      done = true;
      clearTimeout(timer);
      settle();
    };
    onCancel(() => finish(() => {}));
    response.onData((chunk, isLast) => {
      if (done) return;
      received += chunk.byteLength;
      if (received <= limits.bytesMax) {
        // The chunk's memory is taken back when this callback returns.
        if (chunk.byteLength > 0) chunks.push(Buffer.from(chunk.slice(0)));
      } else {
        chunks.length = 0;
        if (isLast || received > discardBytesMax) return finish(() => reject(tooLarge(limits.bytesMax)));
      }
      if (isLast)
        return finish(() => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
      timer ??= setTimeout(() => finish(() => reject(tooSlow())), limits.timeoutSeconds * 1_000);
      // Re-arms the library's idle timer of 10 s, which would cut a body that trickles (D22).
      response.pause();
      response.resume();
    });
    if (declaredBytes > discardBytesMax) finish(() => reject(tooLarge(limits.bytesMax)));
  });
}

function tooSlow(): ApiError {
  return new ApiError('bad_request', {
    msg: 'The body did not arrive in time (bodyTimeoutSeconds).',
    closeConnection: true,
  });
}
