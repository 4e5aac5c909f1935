import { fullAgainAt, secondsUntil } from '../../core/limits/rate-limiter.ts';
import { fingerprint } from '../auth/fingerprint.ts';

/** Size of the table, which is set-associative. */
const slotCount = 262_144;
const slotsPerSet = 8;
/** A slot: the fingerprint, and when its bucket is full again. */
const cellsPerSlot = 2;

/** Length of a burst: the number of requests allowed at once is the number allowed in this time. */
export const burstSeconds = 2;

/** Exclusive end of fingerprints; a device's bucket of bytes has its fingerprint plus this. */
const fingerprintEnd = 2 ** 48;

/** Shared by all workers. */
export interface RateMemory {
  seed: string;
  slots: SharedArrayBuffer;
}

export function allocateRates(seed: string): RateMemory {
  return {
    seed,
    slots: new SharedArrayBuffer(slotCount * cellsPerSlot * Float64Array.BYTES_PER_ELEMENT),
  };
}

/**
 * Table of token buckets (`core/limits/rate-limiter.ts`) shared by all workers, so that a limit holds for all connections of a
 * device together. When a set is full, its fullest bucket is evicted and starts full when it returns: a limit may then
 * be exceeded by a burst, but no client is limited for another. Two workers that take at the same instant may count
 * two requests as one.
 */
export class RequestRates {
  readonly #cells: Float64Array<SharedArrayBuffer>;
  readonly #seed: string;

  constructor({ seed, slots }: RateMemory) {
    this.#cells = new Float64Array(slots);
    this.#seed = seed;
  }

  /** Bucket of a fleet or an address; that of a device is its fingerprint. */
  bucketOf(owner: string): number {
    return fingerprint(this.#seed, owner);
  }

  /** Bucket of a device's bytes, from that of its requests. */
  bytesBucket(bucket: number): number {
    return bucket + fingerprintEnd;
  }

  /** Takes an amount and returns 0, or returns the seconds until it may pass. A full bucket lets any amount pass. */
  take(bucket: number, perSecondMax: number, nowSeconds: number, amount = 1): number {
    const cells = this.#cells;
    const at = this.#find(bucket);
    const fullBefore = cells[at + 1] ?? 0;
    const worthSeconds = amount / perSecondMax;
    const wait = secondsUntil(fullBefore, worthSeconds, burstSeconds, nowSeconds);
    if (wait > 0) return wait;
    cells[at + 1] = fullAgainAt(fullBefore, worthSeconds, nowSeconds);
    return 0;
  }

  /** Counts an amount, even if it may not pass now: later ones then wait longer. */
  spend(bucket: number, perSecondMax: number, nowSeconds: number, amount: number): void {
    const at = this.#find(bucket);
    this.#cells[at + 1] = fullAgainAt(this.#cells[at + 1] ?? 0, amount / perSecondMax, nowSeconds);
  }

  /** Returns the index of the bucket, inserting it if absent. */
  #find(bucket: number): number {
    const cells = this.#cells;
    const first = (bucket % (slotCount / slotsPerSet)) * slotsPerSet * cellsPerSlot;
    const end = first + slotsPerSet * cellsPerSlot;
    let fullest = first;
    for (let at = first; at < end; at += cellsPerSlot) {
      if (cells[at] === bucket) return at;
      if ((cells[at + 1] ?? 0) < (cells[fullest + 1] ?? 0)) fullest = at;
    }
    cells[fullest] = bucket;
    cells[fullest + 1] = 0;
    return fullest;
  }
}
