/**
 * The generic cell rate algorithm: all that is kept of a token bucket is the time at which it is full again. What passes
 * moves that on by the time that it is worth, `amount / perSecondMax`; at most `burstSeconds` worth are ahead of the
 * clock. A full bucket lets anything pass, also what is worth more than it holds. Here as functions, for buckets whose
 * numbers are kept elsewhere: how long until something may pass, 0 or less when it may now ...
 */
export function secondsUntil(
  fullAtSeconds: number,
  worthSeconds: number,
  burstSeconds: number,
  nowSeconds: number,
): number {
  const fullAfter = fullAgainAt(fullAtSeconds, worthSeconds, nowSeconds);
  return Math.min(fullAfter - burstSeconds, fullAtSeconds) - nowSeconds;
}

/** ... and the number once it has passed. */
export function fullAgainAt(fullAtSeconds: number, worthSeconds: number, nowSeconds: number): number {
  return Math.max(fullAtSeconds, nowSeconds) + worthSeconds;
}

/** One bucket, full at first. Its rate may be another one each time. */
export class RateLimiter {
  readonly #burstSeconds: number;
  #fullAtSeconds = Number.NEGATIVE_INFINITY;

  /** `burstSeconds`: so many seconds' worth may come at once. With 0 it spreads evenly, and lets one pass of any size. */
  constructor(burstSeconds: number) {
    this.#burstSeconds = burstSeconds;
  }

  /** 0 when so much may pass now, else the seconds until it may. Nothing is counted. */
  wait(perSecondMax: number, amount = 1, nowSeconds = clockSeconds()): number {
    const wait = secondsUntil(this.#fullAtSeconds, amount / perSecondMax, this.#burstSeconds, nowSeconds);
    return Math.max(0, wait);
  }

  /** Counts it, whether it may pass now or not: who goes on before `wait` was over has others wait for longer. */
  spend(perSecondMax: number, amount = 1, nowSeconds = clockSeconds()): void {
    this.#fullAtSeconds = fullAgainAt(this.#fullAtSeconds, amount / perSecondMax, nowSeconds);
  }

  /** As `wait`; what may pass is counted. */
  take(perSecondMax: number, amount = 1, nowSeconds = clockSeconds()): number {
    const wait = this.wait(perSecondMax, amount, nowSeconds);
    if (wait === 0) this.spend(perSecondMax, amount, nowSeconds);
    return wait;
  }

  /** As if nothing had ever passed. */
  isFull(nowSeconds = clockSeconds()): boolean {
    return this.#fullAtSeconds <= nowSeconds;
  }
}

/** Of this thread: it does not jump. */
function clockSeconds(): number {
  return performance.now() / 1_000;
}
