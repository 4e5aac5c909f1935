import { sleep } from '../core/async.ts';

const pollMs = 100;

/**
 * Flag that this server is held: it serves devices, and whatever acts by itself waits for an operator's release. One
 * flag for all threads of the process, which each actor reads before it acts.
 */
export class Hold {
  /** Handed to other threads, which make a `Hold` of it. */
  readonly memory: SharedArrayBuffer;
  readonly #cell: Int32Array<SharedArrayBuffer>;

  constructor(memory = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#cell = new Int32Array(memory);
  }

  get isHeld(): boolean {
    return Atomics.load(this.#cell, 0) === 1;
  }

  set isHeld(isHeld: boolean) {
    Atomics.store(this.#cell, 0, Number(isHeld));
  }

  /** Settles once the server is not held, or on abort. */
  async released(signal: AbortSignal): Promise<void> {
    while (this.isHeld && !signal.aborted) await sleep(pollMs, signal);
  }
}
