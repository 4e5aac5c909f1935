/*
 * Token buckets by the generic cell rate algorithm: all that is kept of one is the time at which it is full again. What
 * passes moves that on by what it is worth, `amount / perSecondMax` seconds, and nothing passes that would bring it more
 * than `burstSeconds` ahead of the clock. A full bucket lets anything pass, also what is worth more than it holds.
 */

/** How long until it may pass; 0 or less when it may now. For buckets whose numbers are kept elsewhere. */
export function secondsUntil(
  fullAtSeconds: number,
  worthSeconds: number,
  burstSeconds: number,
  nowSeconds: number,
): number {
  const fullAfter = fullAgainAt(fullAtSeconds, worthSeconds, nowSeconds);
  return Math.min(fullAfter - burstSeconds, fullAtSeconds) - nowSeconds;
}

/** When the bucket is full again once it has passed. */
export function fullAgainAt(fullAtSeconds: number, worthSeconds: number, nowSeconds: number): number {
  return Math.max(fullAtSeconds, nowSeconds) + worthSeconds;
}

/** One bucket, full at first. Its rate may be another one each time. */
export class RateLimiter {
  readonly #burstSeconds: number;
  #fullAtSeconds = Number.NEGATIVE_INFINITY;

  /** With a burst of 0 it spreads evenly: one passes at a time, whatever its amount. */
  constructor(burstSeconds: number) {
    this.#burstSeconds = burstSeconds;
  }

  /** 0 when so much may pass now, else the seconds until it may. Nothing is counted. */
  wait(perSecondMax: number, amount = 1, nowSeconds = clockSeconds()): number {
    return Math.max(
      0,
      secondsUntil(this.#fullAtSeconds, amount / perSecondMax, this.#burstSeconds, nowSeconds),
    );
  }

  /** Counts it, whether it may pass now or not: what goes before its time has the others wait for longer. */
  spend(perSecondMax: number, amount = 1, nowSeconds = clockSeconds()): void {
    this.#fullAtSeconds = fullAgainAt(this.#fullAtSeconds, amount / perSecondMax, nowSeconds);
  }

  /** As `wait`; what may pass is counted. */
  take(perSecondMax: number, amount = 1, nowSeconds = clockSeconds()): number {
    const wait = this.wait(perSecondMax, amount, nowSeconds);
    if (wait === 0) this.spend(perSecondMax, amount, nowSeconds);
    return wait;
  }

  /** Whether it is as if nothing had ever passed. */
  isFull(nowSeconds = clockSeconds()): boolean {
    return this.#fullAtSeconds <= nowSeconds;
  }
}

/** Of this thread: it does not jump. */
function clockSeconds(): number {
  return performance.now() / 1_000;
}
