const slots = 65_536;
const mask = slots - 1;
const none = -1;

/**
 * Due times of millions of timers, to the millisecond, in 12 bytes each: a wheel of slots, each a list that is linked
 * through the arrays.
 */
export class TimingWheel {
  readonly #heads = new Int32Array(slots).fill(none);
  readonly #next: Int32Array;
  /** The one before; of the first in its list -2 - slot, of one in no list -1. */
  readonly #before: Int32Array;
  readonly #due: Uint32Array;
  #nowMs = 0;

  constructor(timers: number) {
    this.#next = new Int32Array(timers).fill(none);
    this.#before = new Int32Array(timers).fill(none);
    this.#due = new Uint32Array(timers);
  }

  /** Bytes for so many timers, beside the wheel itself. */
  static bytesOf(timers: number): number {
    return 12 * timers;
  }

  /** Sets a timer, also one that is set. What is due already comes with the next millisecond. */
  set(timer: number, dueMs: number): void {
    this.clear(timer);
    this.#due[timer] = dueMs;
    const slot = Math.max(dueMs, this.#nowMs + 1) & mask;
    const head = this.#heads[slot] ?? none;
    this.#next[timer] = head;
    this.#before[timer] = -2 - slot;
    if (head !== none) this.#before[head] = timer;
    this.#heads[slot] = timer;
  }

  clear(timer: number): void {
    const before = this.#before[timer] ?? none;
    if (before === none) return;
    const next = this.#next[timer] ?? none;
    if (before < none) this.#heads[-2 - before] = next;
    else this.#next[before] = next;
    if (next !== none) this.#before[next] = before;
    this.#before[timer] = none;
  }

  isSet(timer: number): boolean {
    return this.#before[timer] !== none;
  }

  /** Goes on to that time, and hands out each timer that is due with the time that it was due at. */
  advance(nowMs: number, onDue: (timer: number, dueMs: number) => void): void {
    const due: number[] = [];
    while (this.#nowMs < nowMs) {
      this.#nowMs += 1;
      let timer = this.#heads[this.#nowMs & mask] ?? none;
      for (; timer !== none; timer = this.#next[timer] ?? none) {
        if ((this.#due[timer] ?? 0) <= this.#nowMs) due.push(timer);
      }
      for (const one of due) {
        const dueMs = this.#due[one] ?? 0;
        // Another timer's callback may have changed this one.
        if (!this.isSet(one) || dueMs > this.#nowMs) continue;
        this.clear(one);
        onDue(one, dueMs);
      }
      due.length = 0;
    }
  }
}
