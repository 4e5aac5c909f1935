import { Condition } from '../../../core/async.ts';
import { isWithinShare } from '../../../core/fair-share.ts';

/**
 * Bytes in memory of all forwarders together, shared by fleets. A loop that gets none releases what it has and
 * queues: receivers that never answer take no more than their fleet's share.
 */
export class ByteBudget {
  readonly #bytesMax: number;
  readonly #bytesOf = new Map<string, number>();
  #bytes = 0;
  readonly #waiting = new Condition();
  /** Loops that have bytes which they do not need right now. */
  readonly #idle = new Condition();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** A request larger than the budget succeeds when nobody else has any. */
  take(owner: string, bytes: number): boolean {
    if (!this.#mayTake(owner, bytes)) return false;
    this.#bytes += bytes;
    this.#bytesOf.set(owner, (this.#bytesOf.get(owner) ?? 0) + bytes);
    // There may be enough for the next waiter too.
    this.#waiting.wakeOne();
    return true;
  }

  /** Wakes the first waiter that may have what it needs. */
  release(owner: string, bytes: number): void {
    this.#bytes -= bytes;
    const left = (this.#bytesOf.get(owner) ?? 0) - bytes;
    if (left === 0) this.#bytesOf.delete(owner);
    else this.#bytesOf.set(owner, left);
    this.#waiting.wakeOne();
  }

  /** Settles when that many bytes are available, at least for a moment, or on abort. */
  async freed(owner: string, bytes: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#mayTake(owner, bytes)) return;
    const freed = this.#waiting.wait(signal, { when: () => this.#mayTake(owner, bytes) });
    this.#idle.wakeOne();
    await freed;
  }

  /** Settles when another loop waits for bytes, or on abort. */
  async wanted(signal: AbortSignal): Promise<void> {
    if (this.#waiting.size === 0) await this.#idle.wait(signal);
  }

  #mayTake(owner: string, bytes: number): boolean {
    if (this.#bytes === 0) return true;
    return isWithinShare(this.#bytesMax, this.#bytes, this.#bytesOf.get(owner) ?? 0, bytes);
  }
}
