import type { Settings } from '../../core/config/settings.ts';
import { ApiError } from '../../core/errors.ts';
import type { DeviceApiConfig } from '../config.ts';
import type { HttpResponse } from '../uws/uws.ts';
import { BodyMemory, type Holder } from './body-memory.ts';

const bytesMin = 1_024;
/** Largest body of a claim: four times what three ids, a token and a name need. */
const claimBytesMax = 4_096;

/**
 * The chunks of a body so far, in one buffer that doubles: with a buffer each, chunks of one byte would take a hundred
 * times what the memory counts.
 */
class PartialBody implements Holder {
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

  /** False if there is no memory for it; all memory is released then. */
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

  assign(device: string): void {
    this.#memory.assign(device, this);
  }

  free(): void {
    this.#memory.free(this);
  }
}

/**
 * A body beyond its limit is read and discarded up to this size, so that every client sees its 413 (D9): most read no
 * answer before they have sent everything. Beyond it, the connection is closed with the answer.
 */
const discardBytesMax = 32 * 1024 * 1024;

/** Pieces that any body may come in, each some microseconds of this thread: chunks, or what each read has of one. */
export const bodyPiecesMax = 4_096;
/** Mean bytes of those beyond. */
export const bodyPieceBytesMin = 64;

/** Counts the pieces that a body comes in. */
export class BodyPieces {
  #pieces = 0;
  bytes = 0;

  /** Counts one; true if it is one too many for the bytes so far. */
  isFlood(bytes: number): boolean {
    this.#pieces += 1;
    this.bytes += bytes;
    return this.#pieces > bodyPiecesMax + this.bytes / bodyPieceBytesMin;
  }
}

/** Limits for one kind of body. */
export interface BodyLimits {
  readonly settings: Settings<{ bodyTimeoutSeconds: number }>;
  readonly bytesMax: number;
  /** Config key of `bytesMax`; undefined if it is fixed. */
  readonly bytesMaxKey: 'bodyBytesMax' | undefined;
  readonly memory: BodyMemory;
}

export function deviceBodyLimits(config: DeviceApiConfig): BodyLimits {
  const memory = new BodyMemory(config.bodyMemoryBytesMax, 'bodyMemoryBytesMax');
  return { settings: config.settings, bytesMax: config.bodyBytesMax, bytesMaxKey: 'bodyBytesMax', memory };
}

/** The same for an endpoint with a limit of its own. */
export function limitedTo(limits: BodyLimits, bytesMax: number | undefined): BodyLimits {
  return bytesMax === undefined ? limits : { ...limits, bytesMax, bytesMaxKey: undefined };
}

export function claimBodyLimits(config: DeviceApiConfig): BodyLimits {
  const memory = new BodyMemory(config.claimMemoryBytesMax, 'claimMemoryBytesMax');
  return { settings: config.settings, bytesMax: claimBytesMax, bytesMaxKey: undefined, memory };
}

/** Receives a body once, in place of callbacks: a promise or a closure per request is what a datapoint can least afford. */
export interface BodyTaker {
  /** Takes the bytes, which are the library's own and valid until this returns, or the error. */
  onBody(body: Buffer | ApiError): void;
  /** Takes the error of a body that must end in this turn. */
  onFlood(error: ApiError): void;
  /** Called at the end of such a body. */
  onFloodEnd(): void;
}

/** The sender of a body; read only if the body comes in several chunks. */
export type BodySender = Pick<Holder, 'device' | 'address'>;

const tooLarge = ({ bytesMax, bytesMaxKey }: BodyLimits, closeConnection: boolean): ApiError =>
  new ApiError('request_too_large', {
    msg: `The body is larger than ${bytesMax} bytes${bytesMaxKey === undefined ? '' : ` (${bytesMaxKey})`}.`,
    closeConnection,
  });

/** The error for a declared length that would not even be discarded. */
export function refusalOfLength(declaredBytes: number, limits: BodyLimits): ApiError | undefined {
  return declaredBytes > discardBytesMax ? tooLarge(limits, true) : undefined;
}

const tooSlow = (): ApiError =>
  new ApiError('bad_request', {
    msg: 'The body did not arrive in time (bodyTimeoutSeconds).',
    closeConnection: true,
  });

export const tooManyPieces = (): ApiError =>
  new ApiError('bad_request', {
    msg: `The body came in more than ${bodyPiecesMax} pieces of less than ${bodyPieceBytesMin} bytes. Send larger chunks.`,
    closeConnection: true,
  });

/**
 * Collects one request body and hands it over once: the bytes, or `request_too_large`, or `bad_request` after its
 * timeout or for too many pieces, or `unavailable` when its memory was taken away. Must be created before the handler returns.
 */
export class BodyReader {
  readonly #response: HttpResponse;
  readonly #limits: BodyLimits;
  readonly #sender: BodySender;
  readonly #taker: BodyTaker;
  /** Created with the first chunk that is not the last. */
  #partial: PartialBody | undefined;
  readonly #pieces = new BodyPieces();
  readonly #startedAtMs = performance.now();
  #done = false;
  #isFlood = false;

  constructor(response: HttpResponse, limits: BodyLimits, sender: BodySender, taker: BodyTaker) {
    this.#response = response;
    this.#limits = limits;
    this.#sender = sender;
    this.#taker = taker;
    response.onData((chunk, isLast) => {
      if (!this.#done) this.#take(chunk, isLast);
      if (isLast && this.#isFlood) this.#taker.onFloodEnd();
    });
  }

  /** Stops reading: nobody waits for the body any more. */
  cancel(): void {
    this.#done = true;
    this.#forget();
  }

  /** Counts its memory to the device, once that has authenticated. */
  assign(device: string): void {
    this.#partial?.assign(device);
  }

  /** To be called every second: ends a body after its timeout, and keeps a paused one alive. */
  watch(nowMs: number): void {
    if (this.#done) return;
    if (nowMs - this.#startedAtMs > this.#limits.settings.current.bodyTimeoutSeconds * 1_000) {
      this.#fail(tooSlow());
      return;
    }
    // Re-arms the library's idle timer of 10 s, which would cut a slow body (D22).
    this.#response.pause();
    this.#response.resume();
  }

  /** Most bodies come in one chunk, which need not be copied. */
  #take(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.#pieces.isFlood(chunk.byteLength)) {
      this.#isFlood = true;
      this.cancel();
      this.#taker.onFlood(tooManyPieces());
    } else if (this.#pieces.bytes > this.#limits.bytesMax) {
      this.#forget();
      const isEndless = this.#pieces.bytes > discardBytesMax;
      if (isLast || isEndless) this.#fail(tooLarge(this.#limits, isEndless));
    } else if (isLast && this.#partial === undefined) {
      this.#done = true;
      this.#taker.onBody(Buffer.from(chunk));
    } else if (!this.#keep(chunk)) this.#fail(this.#limits.memory.refusal());
    else if (isLast) {
      const body = (this.#partial as PartialBody).bytesSoFar;
      this.cancel();
      this.#taker.onBody(body);
    }
  }

  /** False if it was itself evicted. */
  #keep(chunk: ArrayBuffer): boolean {
    const { memory, bytesMax } = this.#limits;
    this.#partial ??= new PartialBody(memory, this.#sender, () => this.#evicted());
    return this.#partial.add(chunk, bytesMax);
  }

  /** Called during another client's request, so this one is answered a turn later. */
  #evicted(): void {
    this.cancel();
    setImmediate(() => this.#taker.onBody(this.#limits.memory.refusal()));
  }

  #forget(): void {
    this.#partial?.free();
    this.#partial = undefined;
  }

  #fail(error: ApiError): void {
    this.cancel();
    this.#taker.onBody(error);
  }
}
