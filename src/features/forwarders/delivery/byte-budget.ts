import { Condition } from '../../../core/async.ts';
import { isWithinShare } from '../../../core/fair-share.ts';

/**
 * Bytes that all forwarders hold together, shared by fleets. Who does not get them lets go of what it holds, and waits
 * in line: receivers that never answer take up no more than their own fleet's share.
 */
export class ByteBudget {
  readonly #bytesMax: number;
  readonly #bytesOf = new Map<string, number>();
  #bytes = 0;
  readonly #waiting = new Condition();
  /** Those that hold bytes which they do not need just now. */
  readonly #idle = new Condition();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** One that is larger than all there is has it when nobody else has any. */
  take(owner: string, bytes: number): boolean {
    if (!this.#mayTake(owner, bytes)) return false;
    this.#bytes += bytes;
    this.#bytesOf.set(owner, (this.#bytesOf.get(owner) ?? 0) + bytes);
    // There may be enough for another one too.
    this.#waiting.wakeOne();
    return true;
  }

  /** Lets the first that waits, and may have what it needs, try again. */
  give(owner: string, bytes: number): void {
    this.#bytes -= bytes;
    const left = (this.#bytesOf.get(owner) ?? 0) - bytes;
    if (left === 0) this.#bytesOf.delete(owner);
    else this.#bytesOf.set(owner, left);
    this.#waiting.wakeOne();
  }

  /** Settles when so many can be had, for a moment at least, or with the signal. */
  async freed(owner: string, bytes: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#mayTake(owner, bytes)) return;
    const freed = this.#waiting.wait(signal, { when: () => this.#mayTake(owner, bytes) });
    this.#idle.wakeOne();
    await freed;
  }

  /** Settles when somebody waits for bytes, or with the signal. */
  async wanted(signal: AbortSignal): Promise<void> {
    if (this.#waiting.size === 0) await this.#idle.wait(signal);
  }

  #mayTake(owner: string, bytes: number): boolean {
    if (this.#bytes === 0) return true;
    return isWithinShare(this.#bytesMax, this.#bytes, this.#bytesOf.get(owner) ?? 0, bytes);
  }
}
