import { monotonicSeconds } from '../../core/clock.ts';
import { rateLimited } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';
import { fingerprint } from './fingerprint.ts';

/** Pairs that are remembered, and how many places one may be in. */
const pairCount = 65_536;
const pairsPerSet = 8;
/** What is kept of a pair: one cell each. */
const fingerprintAt = 0;
const countedSinceAt = 1;
const failuresAt = 2;
const lockedUntilAt = 3;
const lockSecondsAt = 4;
const pairCells = 5;

/** Cells for devices, a power of two. Devices that share one only have their secret looked at again. */
const guardCount = 65_536;

/** Shared by all workers: a client's connections are dealt to one after another. */
export interface LockoutMemory {
  seed: string;
  pairs: SharedArrayBuffer;
  guards: SharedArrayBuffer;
}

export function allocateLockouts(seed: string): LockoutMemory {
  return {
    seed,
    pairs: new SharedArrayBuffer(pairCount * pairCells * Float64Array.BYTES_PER_ELEMENT),
    guards: new SharedArrayBuffer(guardCount * Float64Array.BYTES_PER_ELEMENT),
  };
}

export interface LockoutLimits {
  unauthorizedMax: number;
  unauthorizedWindowSeconds: number;
  lockoutSecondsMax: number;
}

/**
 * Who was answered 401 too often, by address and device (D6). A device that is locked out from nowhere costs
 * one look at its guard. Full memory forgets the pair that failed longest ago. Of two workers that count for
 * the same pair in the same instant one may be lost.
 */
export class Lockouts {
  readonly #pairs: Float64Array<SharedArrayBuffer>;
  /** Until when a device is locked out from some address; 0 from none. */
  readonly #guards: Float64Array<SharedArrayBuffer>;
  readonly #seed: string;
  readonly #limits: LockoutLimits;

  constructor({ seed, pairs, guards }: LockoutMemory, limits: LockoutLimits) {
    this.#seed = seed;
    this.#pairs = new Float64Array(pairs);
    this.#guards = new Float64Array(guards);
    this.#limits = limits;
  }

  /** To be kept by whoever asks often. */
  fingerprint(device: DeviceKey): number {
    return fingerprint(this.#seed, device);
  }

  /** Whether the device of this fingerprint may be locked out from where it asks. */
  isGuarded(print: number): boolean {
    const guard = print % guardCount;
    const until = this.#guards[guard] ?? 0;
    if (until === 0) return false;
    if (until > monotonicSeconds()) return true;
    this.#guards[guard] = 0;
    return false;
  }

  /** `client` is looked at only where the device is guarded. @throws ApiError rate_limited. */
  check(device: DeviceKey, print: number, client: { readonly address: string }): void {
    if (!this.isGuarded(print)) return;
    const at = this.#find(this.#nameOf(device, client.address));
    if (at < 0) return;
    const left = (this.#pairs[at + lockedUntilAt] ?? 0) - monotonicSeconds();
    if (left <= 0) return;
    // The clocks of two threads agree to a fraction of a millisecond, which rounds up to a second too many.
    const seconds = Math.min(left, this.#pairs[at + lockSecondsAt] ?? 0);
    throw rateLimited(
      'Too many requests with credentials that were not accepted (unauthorizedMax).',
      seconds,
    );
  }

  /** Counts a 401. */
  failed(device: DeviceKey, client: { readonly address: string }): void {
    const { unauthorizedMax, unauthorizedWindowSeconds, lockoutSecondsMax } = this.#limits;
    if (unauthorizedMax === 0) return;
    const pairs = this.#pairs;
    const now = monotonicSeconds();
    const at = this.#findOrPlace(this.#nameOf(device, client.address));
    if (now - (pairs[at + countedSinceAt] ?? 0) > unauthorizedWindowSeconds) {
      pairs[at + countedSinceAt] = now;
      pairs[at + failuresAt] = 0;
    }
    const failures = (pairs[at + failuresAt] ?? 0) + 1;
    pairs[at + failuresAt] = failures;
    const lastSeconds = pairs[at + lockSecondsAt] ?? 0;
    // Who was locked out lately and fails again has had its tries.
    const isBack = lastSeconds > 0 && now - (pairs[at + lockedUntilAt] ?? 0) < lockoutSecondsMax;
    if (failures < unauthorizedMax && !isBack) return;
    const seconds = Math.min(isBack ? lastSeconds * 2 : unauthorizedWindowSeconds, lockoutSecondsMax);
    pairs[at + lockSecondsAt] = seconds;
    pairs[at + lockedUntilAt] = now + seconds;
    const guard = this.fingerprint(device) % guardCount;
    this.#guards[guard] = Math.max(this.#guards[guard] ?? 0, now + seconds);
  }

  #nameOf(device: DeviceKey, address: string): number {
    return fingerprint(this.#seed, `${device} ${address}`);
  }

  /** The pair's first cell, or -1. */
  #find(pair: number): number {
    const first = this.#setOf(pair);
    for (let at = first; at < first + pairsPerSet * pairCells; at += pairCells) {
      if (this.#pairs[at + fingerprintAt] === pair) return at;
    }
    return -1;
  }

  #findOrPlace(pair: number): number {
    const known = this.#find(pair);
    if (known >= 0) return known;
    const pairs = this.#pairs;
    const first = this.#setOf(pair);
    const lastAt = (at: number): number =>
      Math.max(pairs[at + countedSinceAt] ?? 0, pairs[at + lockedUntilAt] ?? 0);
    let oldest = first;
    for (let at = first; at < first + pairsPerSet * pairCells; at += pairCells) {
      if (lastAt(at) < lastAt(oldest)) oldest = at;
    }
    pairs.fill(0, oldest, oldest + pairCells);
    pairs[oldest + fingerprintAt] = pair;
    return oldest;
  }

  #setOf(pair: number): number {
    return (pair % (pairCount / pairsPerSet)) * pairsPerSet * pairCells;
  }
}
