import { clientAddressText } from '../address.ts';
import type { Log } from '../telemetry/log.ts';
import { fullAgainAt, secondsUntil } from './rate-limiter.ts';

/** Share of its time from which a thread is busy: below it, whoever connects is served in a moment. */
const busyShare = 0.9;
/** Shortest time over which that share is measured. */
const measureMs = 100;
/** Time for which a thread that was busy counts as busy: else an address could fill it up again and again. */
const busyMs = 10_000;
const burstSeconds = 1;
/** Beyond it, the address that connected longest ago is forgotten, and starts afresh. */
const addressesMax = 4_096;
const linePeriodMs = 60_000;

interface Bucket {
  fullAtSeconds: number;
  refused: number;
  loggedAtMs: number;
}

export interface ConnectionRateOptions {
  /** Configuration key of the limit. */
  limit: string;
  /** 0: no limit. Read at each use. */
  perSecondMax: () => number;
  log: Log;
}

/**
 * Limits the new connections of an address to this thread while it is busy. A handshake costs the server a millisecond
 * and whoever replays its first message next to nothing; but a fleet behind one NAT that comes back at once is no harm
 * as long as others are served. Costs a look at the clock while the thread is not busy.
 */
export class ConnectionRate {
  readonly #options: ConnectionRateOptions;
  readonly #buckets = new Map<string, Bucket>();
  #measured = performance.eventLoopUtilization();
  #measuredAtMs = performance.now();
  #busyUntilMs = 0;

  constructor(options: ConnectionRateOptions) {
    this.#options = options;
  }

  /** Counts a new connection; true if it is one too many. The address is asked for only while the thread is busy. */
  isExceeded(addressOf: () => string): boolean {
    const perSecondMax = this.#options.perSecondMax();
    const nowMs = performance.now();
    if (perSecondMax === 0 || !this.#isBusy(nowMs)) return false;
    const address = addressOf();
    // A connection that its client has reset has no address any more, and costs no handshake.
    if (address === '') return false;
    const bucket = this.#bucketOf(address);
    const costSeconds = 1 / perSecondMax;
    const nowSeconds = nowMs / 1_000;
    if (secondsUntil(bucket.fullAtSeconds, costSeconds, burstSeconds, nowSeconds) <= 0) {
      bucket.fullAtSeconds = fullAgainAt(bucket.fullAtSeconds, costSeconds, nowSeconds);
      return false;
    }
    this.#report(address, bucket, nowMs);
    return true;
  }

  #isBusy(nowMs: number): boolean {
    if (nowMs - this.#measuredAtMs >= measureMs) {
      const before = this.#measured;
      this.#measured = performance.eventLoopUtilization();
      this.#measuredAtMs = nowMs;
      const { utilization } = performance.eventLoopUtilization(this.#measured, before);
      if (utilization >= busyShare) this.#busyUntilMs = nowMs + busyMs;
    }
    return nowMs < this.#busyUntilMs;
  }

  #bucketOf(address: string): Bucket {
    const bucket = this.#buckets.get(address) ?? {
      fullAtSeconds: 0,
      refused: 0,
      loggedAtMs: Number.NEGATIVE_INFINITY,
    };
    this.#buckets.delete(address);
    this.#buckets.set(address, bucket);
    if (this.#buckets.size > addressesMax) {
      const [oldest] = this.#buckets.keys();
      this.#buckets.delete(oldest as string);
    }
    return bucket;
  }

  /** Logs an address once in a while. */
  #report(address: string, bucket: Bucket, nowMs: number): void {
    bucket.refused += 1;
    if (nowMs - bucket.loggedAtMs < linePeriodMs) return;
    const { limit, log } = this.#options;
    log.warn(
      { address: clientAddressText(address), count: bucket.refused, limit },
      'address over its rate; connections refused',
    );
    bucket.refused = 0;
    bucket.loggedAtMs = nowMs;
  }
}
