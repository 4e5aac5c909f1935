import { type ApiError, unavailable } from '../core/errors.ts';

/** Bytes of bodies that one front end keeps: received in part, or answered and not yet taken by the client. */
export class BodyMemory {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get isFull(): boolean {
    return this.#bytes >= this.#bytesMax;
  }

  /** False, and nothing is kept, when there is no room. */
  keep(bytes: number): boolean {
    if (this.#bytes + bytes > this.#bytesMax) return false;
    this.#bytes += bytes;
    return true;
  }

  free(bytes: number): void {
    this.#bytes -= bytes;
  }
}

export function bodiesFull(): ApiError {
  return unavailable('This server has all the bodies in memory that it may have (bodyMemoryBytesMax).');
}
