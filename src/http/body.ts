import { ApiError } from '../core/errors.ts';
import type { HttpResponse } from './uws.ts';

/** What is beyond a body's limit is read and dropped up to here, so that every client sees its 413 (D9). */
const discardBytesMax = 1024 * 1024;

export interface BodyLimits {
  bodyBytesMax: number;
  bodyTimeoutSeconds: number;
}

const tooLarge = (limit: number): ApiError =>
  new ApiError('request_too_large', { msg: `The body is larger than ${limit} bytes (bodyBytesMax).` });

const tooSlow = (): ApiError =>
  new ApiError('bad_request', {
    msg: 'The body did not arrive in time (bodyTimeoutSeconds).',
    closeConnection: true,
  });

/**
 * Collects one request body and tells of its end once: with the bytes, with `request_too_large`, or with
 * `bad_request` when it takes longer than its time. Must be made before the handler returns. Callbacks, for
 * a promise a request is what a datapoint can least afford.
 */
export class BodyReader {
  readonly #response: HttpResponse;
  readonly #limits: BodyLimits;
  readonly #onBody: (bytes: Buffer) => void;
  readonly #onError: (error: ApiError) => void;
  readonly #chunks: Buffer[] = [];
  #received = 0;
  #timer: NodeJS.Timeout | undefined;
  #done = false;

  constructor(
    response: HttpResponse,
    declaredBytes: number,
    limits: BodyLimits,
    onBody: (bytes: Buffer) => void,
    onError: (error: ApiError) => void,
  ) {
    this.#response = response;
    this.#limits = limits;
    this.#onBody = onBody;
    this.#onError = onError;
    response.onData((chunk, isLast) => {
      if (!this.#done) this.#take(chunk, isLast);
    });
    if (declaredBytes > discardBytesMax) this.#fail(tooLarge(limits.bodyBytesMax));
  }

  /** Nobody is waiting any more. */
  cancel(): void {
    this.#done = true;
    clearTimeout(this.#timer);
  }

  #take(chunk: ArrayBuffer, isLast: boolean): void {
    const { bodyBytesMax, bodyTimeoutSeconds } = this.#limits;
    this.#received += chunk.byteLength;
    const isTooLarge = this.#received > bodyBytesMax;
    if (isTooLarge) this.#chunks.length = 0;
    // The chunk's memory is taken back when this callback returns; and a copy that has memory of its own
    // crosses threads without its neighbours.
    else this.#chunks.push(Buffer.from(chunk.slice(0)));
    if (isTooLarge && (isLast || this.#received > discardBytesMax)) this.#fail(tooLarge(bodyBytesMax));
    else if (isLast) this.#finish();
    else {
      this.#timer ??= setTimeout(() => this.#fail(tooSlow()), bodyTimeoutSeconds * 1_000);
      // Re-arms the library's idle timer of 10 s, which would cut a body that trickles (D22).
      this.#response.pause();
      this.#response.resume();
    }
  }

  #finish(): void {
    this.cancel();
    const [first, second] = this.#chunks;
    this.#onBody(first !== undefined && second === undefined ? first : Buffer.concat(this.#chunks));
  }

  #fail(error: ApiError): void {
    this.cancel();
    this.#onError(error);
  }
}
