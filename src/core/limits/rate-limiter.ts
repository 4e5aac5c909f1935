/**
 * Token buckets by the generic cell rate algorithm: the state of a bucket is just the time at which it is full again.
 * Each request moves that on by its cost, `amount / perSecondMax` seconds; a request is refused if that would put it
 * more than `burstSeconds` ahead of the clock. A full bucket lets anything pass, even a request that costs more than
 * it holds.
 */

/** Seconds until a request may pass; 0 or less if now. For buckets whose state is kept elsewhere. */
export function secondsUntil(
  fullAtSeconds: number,
  costSeconds: number,
  burstSeconds: number,
  nowSeconds: number,
): number {
  const fullAfter = fullAgainAt(fullAtSeconds, costSeconds, nowSeconds);
  return Math.min(fullAfter - burstSeconds, fullAtSeconds) - nowSeconds;
}

/** When the bucket is full again after a request passed. */
export function fullAgainAt(fullAtSeconds: number, costSeconds: number, nowSeconds: number): number {
  return Math.max(fullAtSeconds, nowSeconds) + costSeconds;
}

/** One bucket, full at first. The rate may differ at each call. */
export class RateLimiter {
  readonly #burstSeconds: number;
  #fullAtSeconds = Number.NEGATIVE_INFINITY;

  /** A burst of 0 spaces evenly: one request passes at a time, whatever its amount. */
  constructor(burstSeconds: number) {
    this.#burstSeconds = burstSeconds;
  }

  /** Returns 0 if the amount may pass now, else the seconds until it may. Counts nothing. */
  wait(perSecondMax: number, amount = 1, nowSeconds = clockSeconds()): number {
    return Math.max(
      0,
      secondsUntil(this.#fullAtSeconds, amount / perSecondMax, this.#burstSeconds, nowSeconds),
    );
  }

  /** Counts the amount, even if it may not pass now: later requests then wait longer. */
  spend(perSecondMax: number, amount = 1, nowSeconds = clockSeconds()): void {
    this.#fullAtSeconds = fullAgainAt(this.#fullAtSeconds, amount / perSecondMax, nowSeconds);
  }

  /** Like `wait`, and counts the amount if it may pass. */
  take(perSecondMax: number, amount = 1, nowSeconds = clockSeconds()): number {
    const wait = this.wait(perSecondMax, amount, nowSeconds);
    if (wait === 0) this.spend(perSecondMax, amount, nowSeconds);
    return wait;
  }

  /** True if the bucket is as good as new. */
  isFull(nowSeconds = clockSeconds()): boolean {
    return this.#fullAtSeconds <= nowSeconds;
  }
}

/** Interval at which buckets that are full again are removed. */
const pruneSeconds = 60;

/** A bucket for each key, as of a token or a fleet. Those that are full equal new ones, and are not kept for long. */
export class RateLimiters {
  readonly #burstSeconds: number;
  readonly #limiters = new Map<string, RateLimiter>();
  #prunedAtSeconds = 0;

  constructor(burstSeconds: number) {
    this.#burstSeconds = burstSeconds;
  }

  /** Not to be kept by the caller. */
  of(key: string): RateLimiter {
    this.#prune();
    const limiter = this.#limiters.get(key) ?? new RateLimiter(this.#burstSeconds);
    this.#limiters.set(key, limiter);
    return limiter;
  }

  #prune(): void {
    const nowSeconds = clockSeconds();
    if (nowSeconds - this.#prunedAtSeconds < pruneSeconds) return;
    this.#prunedAtSeconds = nowSeconds;
    for (const [key, limiter] of this.#limiters) if (limiter.isFull(nowSeconds)) this.#limiters.delete(key);
  }
}

/** This thread's monotonic clock. */
function clockSeconds(): number {
  return performance.now() / 1_000;
}
