/** Between two words that are looked at: whatever the heap holds there, its block headers alone are closer. */
const strideBytes = 512;

/**
 * How much of the machine's memory an engine takes. Its address space is 16 MB from the start and does not shrink;
 * the system provides a page when it is first written. The heap grows upwards, so the last page that is not zero
 * tells how far it has ever reached, whatever was freed again.
 */
export class EngineMemory {
  readonly #memory: { readonly buffer: ArrayBuffer };
  readonly #reachedAtFirst: number;
  #reached: number;

  /** Of an engine that is new: what is before is its data, its stack and all that the language has. */
  constructor(memory: { readonly buffer: ArrayBuffer }) {
    this.#memory = memory;
    this.#reachedAtFirst = lastWritten(memory.buffer, 0);
    this.#reached = this.#reachedAtFirst;
  }

  /** What it has grown by. Costs up to half a millisecond where the memory was never looked at. */
  grownBytes(): number {
    this.#reached = lastWritten(this.#memory.buffer, this.#reached);
    return this.#reached - this.#reachedAtFirst;
  }
}

/** The last place that is not zero, from `least` on. */
function lastWritten(buffer: ArrayBuffer, least: number): number {
  const words = new Int32Array(buffer);
  const stride = strideBytes / Int32Array.BYTES_PER_ELEMENT;
  const first = least / Int32Array.BYTES_PER_ELEMENT;
  for (let at = words.length - stride; at > first; at -= stride) if (words[at] !== 0) return 4 * at;
  return least;
}
