const bucketMs = 10_000;
const buckets = 6;

/** How often one action runs: bounded to a rate, and counted over the last minute. */
export class Pace {
  readonly #rate: () => number;
  #tokens: number;
  #filledAtMs = performance.now();
  readonly #counts = new Float64Array(buckets);
  #bucket = 0;

  /** `rate`: runs a second, as many at once after a second without any. */
  constructor(rate: () => number) {
    this.#rate = rate;
    this.#tokens = rate();
  }

  /** Whether another run may start now. */
  get isOpen(): boolean {
    const nowMs = performance.now();
    const rate = this.#rate();
    this.#tokens = Math.min(rate, this.#tokens + ((nowMs - this.#filledAtMs) / 1_000) * rate);
    this.#filledAtMs = nowMs;
    return this.#tokens >= 1;
  }

  take(): void {
    this.#tokens -= 1;
    this.#turn();
    this.#counts[this.#bucket % buckets] = (this.#counts[this.#bucket % buckets] ?? 0) + 1;
  }

  get lastMinute(): number {
    this.#turn();
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  #turn(): void {
    const now = Math.floor(performance.now() / bucketMs);
    for (let next = Math.max(this.#bucket + 1, now - buckets + 1); next <= now; next += 1) {
      this.#counts[next % buckets] = 0;
    }
    this.#bucket = now;
  }
}
