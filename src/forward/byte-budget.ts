import { Waiters } from './waiters.ts';

/** Bytes that all forwarders hold together. Who does not get them lets go of what it holds, and waits in line. */
export class ByteBudget {
  readonly #bytesMax: number;
  #bytes = 0;
  readonly #waiting = new Waiters();
  /** Those that hold bytes which they do not need just now. */
  readonly #idle = new Waiters();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** One that is larger than all there is has it when nobody else has any. */
  take(bytes: number): boolean {
    if (this.#bytes > 0 && this.#bytes + bytes > this.#bytesMax) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Lets the first that waits try again. */
  give(bytes: number): void {
    this.#bytes -= bytes;
    this.#waiting.wakeOne();
  }

  /** Settles when bytes were given back, or with the signal. */
  async freed(signal: AbortSignal): Promise<void> {
    const freed = this.#waiting.wait(signal);
    this.#idle.wakeOne();
    await freed;
  }

  /** Settles when somebody waits for bytes, or with the signal. */
  async wanted(signal: AbortSignal): Promise<void> {
    if (this.#waiting.size === 0) await this.#idle.wait(signal);
  }
}
