import type { BodyMemory, Holder } from './body-memory.ts';

const bytesMin = 1_024;

/**
 * The pieces of a body that have arrived, in one buffer that doubles: as buffers of their own, pieces of a byte
 * would take a hundred times what the memory counts.
 */
export class KeptBody implements Holder {
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
