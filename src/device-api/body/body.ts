import { ApiError } from '../../core/errors.ts';
import type { DeviceApiConfig } from '../config.ts';
import type { HttpResponse } from '../uws/uws.ts';
import { BodyMemory, type Holder } from './body-memory.ts';

const bytesMin = 1_024;

/**
 * The pieces of a body that have arrived, in one buffer that doubles: as buffers of their own, pieces of a byte
 * would take a hundred times what the memory counts.
 */
class KeptBody implements Holder {
  device: string;
  readonly address: string;
  readonly evict: () => void;
  readonly #memory: BodyMemory;
  bytes = 0;
  #buffer = Buffer.alloc(0);
  #filled = 0;

  constructor(
    memory: BodyMemory,
    { device, address }: Pick<Holder, 'device' | 'address'>,
    evict: () => void,
  ) {
    this.#memory = memory;
    this.device = device;
    this.address = address;
    this.evict = evict;
  }

  get bytesSoFar(): Buffer {
    return this.#buffer.subarray(0, this.#filled);
  }

  /** False, and nothing is kept any more, when the memory has no room for it. */
  add(piece: ArrayBuffer, bodyBytesMax: number): boolean {
    const needed = this.#filled + piece.byteLength;
    if (needed > this.#buffer.length) {
      const capacity = Math.max(needed, Math.min(Math.max(2 * this.#buffer.length, bytesMin), bodyBytesMax));
      if (!this.#memory.keep(this, capacity - this.#buffer.length)) return false;
      const larger = Buffer.allocUnsafeSlow(capacity);
      this.#buffer.copy(larger, 0, 0, this.#filled);
      this.#buffer = larger;
    }
    this.#buffer.set(new Uint8Array(piece), this.#filled);
    this.#filled = needed;
    return true;
  }

  belongTo(device: string): void {
    this.#memory.belongTo(device, this);
  }

  free(): void {
    this.#memory.free(this);
  }
}

/**
 * What is beyond a body's limit is read and dropped up to here, so that every client sees its 413 (D9): most
 * read no answer before they have sent all. A connection that goes on beyond is closed with its answer.
 */
const discardBytesMax = 32 * 1024 * 1024;

/** What bodies of one kind may take. */
export interface BodyLimits {
  readonly config: Pick<DeviceApiConfig, 'bodyTimeoutSeconds'>;
  readonly bytesMax: number;
  readonly memory: BodyMemory;
}

type BodyMemoryKey = 'bodyMemoryBytesMax' | 'claimMemoryBytesMax';

export function bodyLimits(config: DeviceApiConfig, bytesMax: number, memoryKey: BodyMemoryKey): BodyLimits {
  return { config, bytesMax, memory: new BodyMemory(config[memoryKey], memoryKey) };
}

/** Who sends a body. Asked only of one that does not come in one piece. */
export type BodySender = Pick<Holder, 'device' | 'address'>;

const tooLarge = ({ bytesMax }: BodyLimits, closeConnection: boolean): ApiError =>
  new ApiError('request_too_large', {
    msg: `The body is larger than ${bytesMax} bytes.`,
    closeConnection,
  });

/** Of a length that is not worth waiting for the client is told at once. @throws ApiError request_too_large. */
export function checkDeclared(declaredBytes: number, limits: BodyLimits): void {
  if (declaredBytes > discardBytesMax) throw tooLarge(limits, true);
}

const tooSlow = (): ApiError =>
  new ApiError('bad_request', {
    msg: 'The body did not arrive in time (bodyTimeoutSeconds).',
    closeConnection: true,
  });

/**
 * Collects one request body and tells of its end once: with the bytes (the library's own, gone when the
 * callback returns: whoever keeps them copies them), with `request_too_large`, with `bad_request` when it takes
 * longer than its time, or with `unavailable` when its memory is needed. Must be made before the handler returns.
 * Callbacks, for a promise a request is what a datapoint can least afford.
 */
export class BodyReader {
  readonly #response: HttpResponse;
  readonly #limits: BodyLimits;
  readonly #sender: BodySender;
  readonly #onBody: (bytes: Buffer) => void;
  readonly #onError: (error: ApiError) => void;
  /** Made with the first piece that is not the last. */
  #kept: KeptBody | undefined;
  #received = 0;
  readonly #startedAtMs = performance.now();
  #done = false;

  constructor(
    response: HttpResponse,
    limits: BodyLimits,
    sender: BodySender,
    onBody: (bytes: Buffer) => void,
    onError: (error: ApiError) => void,
  ) {
    this.#response = response;
    this.#limits = limits;
    this.#sender = sender;
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

  /** Of a sender that was nobody until now. */
  belongTo(device: string): void {
    this.#kept?.belongTo(device);
  }

  /** To be called every second: ends a body that has had its time, and keeps one that pauses alive. */
  watch(nowMs: number): void {
    if (this.#done) return;
    if (nowMs - this.#startedAtMs > this.#limits.config.bodyTimeoutSeconds * 1_000) {
      this.#fail(tooSlow());
      return;
    }
    // Re-arms the library's idle timer of 10 s, which would cut a body that trickles (D22).
    this.#response.pause();
    this.#response.resume();
  }

  /** Most bodies come in one piece, and that one need not be copied. */
  #take(chunk: ArrayBuffer, isLast: boolean): void {
    this.#received += chunk.byteLength;
    if (this.#received > this.#limits.bytesMax) {
      this.#forget();
      const isEndless = this.#received > discardBytesMax;
      if (isLast || isEndless) this.#fail(tooLarge(this.#limits, isEndless));
    } else if (isLast && this.#kept === undefined) {
      this.#done = true;
      this.#onBody(Buffer.from(chunk));
    } else if (!this.#keep(chunk)) this.#fail(this.#limits.memory.refusal());
    else if (isLast) {
      const body = (this.#kept as KeptBody).bytesSoFar;
      this.cancel();
      this.#onBody(body);
    }
  }

  /** False when it was its own turn to make room. */
  #keep(chunk: ArrayBuffer): boolean {
    const { memory, bytesMax } = this.#limits;
    this.#kept ??= new KeptBody(memory, this.#sender, () => this.#evicted());
    return this.#kept.add(chunk, bytesMax);
  }

  /** In the midst of another client's request: its own is told a turn later. */
  #evicted(): void {
    this.cancel();
    setImmediate(() => this.#onError(this.#limits.memory.refusal()));
  }

  #forget(): void {
    this.#kept?.free();
    this.#kept = undefined;
  }

  #fail(error: ApiError): void {
    this.cancel();
    this.#onError(error);
  }
}
