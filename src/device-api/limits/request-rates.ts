import { fullAgainAt, secondsUntil } from '../../core/rate-limiter.ts';
import { fingerprint } from '../auth/fingerprint.ts';

/** Places of the table, and how many of them a fingerprint may be in. */
const placeCount = 262_144;
const placesPerSet = 8;
/** A place: the fingerprint, and when its bucket is full again. */
const placeCells = 2;

/** What may come at once is what may come in this time. */
export const burstSeconds = 2;

/** Fingerprints end below: of what is counted twice, the second bucket lies beside the first. */
const fingerprintEnd = 2 ** 48;

/** Shared by all workers. */
export interface RateMemory {
  seed: string;
  places: SharedArrayBuffer;
}

export function allocateRates(seed: string): RateMemory {
  return {
    seed,
    places: new SharedArrayBuffer(placeCount * placeCells * Float64Array.BYTES_PER_ELEMENT),
  };
}

/**
 * Token buckets that all workers share, so that a limit holds for all connections of a device together: those of
 * `core/rate-limiter.ts`, in a table. Where more buckets than places are in use the fullest gives way and is full
 * when it comes back: a limit may be overstepped by a burst then, but nobody is ever limited for another. Two
 * workers that take in the same instant may count one request for two.
 */
export class RequestRates {
  readonly #cells: Float64Array<SharedArrayBuffer>;
  readonly #seed: string;

  constructor({ seed, places }: RateMemory) {
    this.#cells = new Float64Array(places);
    this.#seed = seed;
  }

  /** Of a fleet or of an address; a device's own is its fingerprint. */
  bucketOf(owner: string): number {
    return fingerprint(this.#seed, owner);
  }

  /** Of a device's bytes, where its requests have that bucket. */
  bytesBucket(bucket: number): number {
    return bucket + fingerprintEnd;
  }

  /** 0 when so much may pass, and is counted; else the seconds until it may. A full bucket lets anything pass. */
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

  /** Where the bucket is, or from now on. */
  #find(bucket: number): number {
    const cells = this.#cells;
    const first = (bucket % (placeCount / placesPerSet)) * placesPerSet * placeCells;
    const end = first + placesPerSet * placeCells;
    let fullest = first;
    for (let at = first; at < end; at += placeCells) {
      if (cells[at] === bucket) return at;
      if ((cells[at + 1] ?? 0) < (cells[fullest + 1] ?? 0)) fullest = at;
    }
    cells[fullest] = bucket;
    cells[fullest + 1] = 0;
    return fullest;
  }
}
