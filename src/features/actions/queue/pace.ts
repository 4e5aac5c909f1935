import { RateLimiter } from '../../../core/rate-limiter.ts';

const bucketMs = 10_000;
const buckets = 6;

/** How often one action runs: bounded to a rate, and counted over the last minute. */
export class Pace {
  readonly #rate: () => number;
  readonly #limiter = new RateLimiter(1);
  readonly #counts = new Float64Array(buckets);
  #bucket = 0;

  /** `rate`: runs a second, as many at once after a second without any. */
  constructor(rate: () => number) {
    this.#rate = rate;
  }

  /** Whether another run may start now. */
  get isOpen(): boolean {
    return this.#limiter.wait(this.#rate()) === 0;
  }

  take(): void {
    this.#limiter.spend(this.#rate());
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
