import { ApiError } from '../core/errors.ts';
import { type BodyMemory, bodiesFull } from './body-memory.ts';
import type { HttpResponse } from './uws.ts';

/**
 * What is beyond a body's limit is read and dropped up to here, so that every client sees its 413 (D9): most
 * read no answer before they have sent all. A connection that goes on beyond is closed with its answer.
 */
const discardBytesMax = 32 * 1024 * 1024;

export interface BodyLimits {
  bodyBytesMax: number;
  bodyTimeoutSeconds: number;
}

const tooLarge = (limit: number, closeConnection: boolean): ApiError =>
  new ApiError('request_too_large', {
    msg: `The body is larger than ${limit} bytes (bodyBytesMax).`,
    closeConnection,
  });

/** Of a length that is not worth waiting for the client is told at once. @throws ApiError request_too_large. */
export function checkDeclared(declaredBytes: number, { bodyBytesMax }: BodyLimits): void {
  if (declaredBytes > discardBytesMax) throw tooLarge(bodyBytesMax, true);
}

const tooSlow = (): ApiError =>
  new ApiError('bad_request', {
    msg: 'The body did not arrive in time (bodyTimeoutSeconds).',
    closeConnection: true,
  });

/**
 * Collects one request body and tells of its end once: with the bytes (the library's own, gone when the
 * callback returns: whoever keeps them copies them), with `request_too_large`, or with
 * `bad_request` when it takes longer than its time. Must be made before the handler returns. Callbacks, for
 * a promise a request is what a datapoint can least afford.
 */
export class BodyReader {
  readonly #response: HttpResponse;
  readonly #limits: BodyLimits;
  readonly #memory: BodyMemory;
  readonly #onBody: (bytes: Buffer) => void;
  readonly #onError: (error: ApiError) => void;
  readonly #chunks: Buffer[] = [];
  #received = 0;
  /** Of the memory. */
  #kept = 0;
  readonly #startedAtMs = performance.now();
  #done = false;

  constructor(
    response: HttpResponse,
    limits: BodyLimits,
    memory: BodyMemory,
    onBody: (bytes: Buffer) => void,
    onError: (error: ApiError) => void,
  ) {
    this.#response = response;
    this.#limits = limits;
    this.#memory = memory;
    this.#onBody = onBody;
    this.#onError = onError;
    response.onData((chunk, isLast) => {
      if (!this.#done) this.#take(chunk, isLast);
    });
  }

  /** Nobody is waiting any more. */
  cancel(): void {
    this.#done = true;
    this.#forget();
  }

  /** To be called every second: ends a body that has had its time, and keeps one that pauses alive. */
  watch(nowMs: number): void {
    if (this.#done) return;
    if (nowMs - this.#startedAtMs > this.#limits.bodyTimeoutSeconds * 1_000) {
      this.#fail(tooSlow());
      return;
    }
    // Re-arms the library's idle timer of 10 s, which would cut a body that trickles (D22).
    this.#response.pause();
    this.#response.resume();
  }

  #take(chunk: ArrayBuffer, isLast: boolean): void {
    const { bodyBytesMax } = this.#limits;
    this.#received += chunk.byteLength;
    if (this.#received > bodyBytesMax) {
      this.#forget();
      const isEndless = this.#received > discardBytesMax;
      if (isLast || isEndless) this.#fail(tooLarge(bodyBytesMax, isEndless));
    } else if (isLast) {
      this.#done = true;
      const last = Buffer.from(chunk);
      // Most bodies come in one piece, and that one need not be copied.
      const body = this.#chunks.length === 0 ? last : Buffer.concat([...this.#chunks, last]);
      this.#forget();
      this.#onBody(body);
    } else if (this.#memory.keep(chunk.byteLength)) {
      this.#kept += chunk.byteLength;
      this.#chunks.push(Buffer.from(chunk.slice(0)));
    } else this.#fail(bodiesFull());
  }

  #forget(): void {
    this.#memory.free(this.#kept);
    this.#kept = 0;
    this.#chunks.length = 0;
  }

  #fail(error: ApiError): void {
    this.cancel();
    this.#onError(error);
  }
}
