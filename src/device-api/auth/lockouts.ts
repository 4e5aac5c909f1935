import { monotonicSeconds } from '../../core/clock.ts';
import { rateLimited } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';
import { fingerprint } from './fingerprint.ts';

/** Size of the table of address-device pairs, which is set-associative. */
const pairCount = 65_536;
const pairsPerSet = 8;
/** Cells of a pair. */
const fingerprintAt = 0;
const countedSinceAt = 1;
const failuresAt = 2;
const lockedUntilAt = 3;
const lockSecondsAt = 4;
const pairCells = 5;

/** Guard cells, a power of two. Devices that share one are only checked in full more often. */
const guardCount = 65_536;

/** Shared by all workers, because a client's connections are spread over them. */
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
 * Locks out an address from a device after too many 401s (D6). A device without a lockout costs one read of its guard
 * cell. A full set evicts the pair that failed longest ago. When two workers count for the same pair at the same
 * instant, one count may be lost.
 */
export class Lockouts {
  readonly #pairs: Float64Array<SharedArrayBuffer>;
  /** When the last lockout of a device ends, from any address; 0 if there is none. */
  readonly #guards: Float64Array<SharedArrayBuffer>;
  readonly #seed: string;
  readonly #limits: LockoutLimits;

  constructor({ seed, pairs, guards }: LockoutMemory, limits: LockoutLimits) {
    this.#seed = seed;
    this.#pairs = new Float64Array(pairs);
    this.#guards = new Float64Array(guards);
    this.#limits = limits;
  }

  /** Costs a hash: callers that ask often cache it. */
  fingerprint(device: DeviceKey): number {
    return fingerprint(this.#seed, device);
  }

  /** Whether the device of this fingerprint may be locked out from some address. */
  isGuarded(print: number): boolean {
    const guard = print % guardCount;
    const until = this.#guards[guard] ?? 0;
    if (until === 0) return false;
    if (until > monotonicSeconds()) return true;
    this.#guards[guard] = 0;
    return false;
  }

  /** Reads the client's address only if the device is guarded. @throws ApiError rate_limited. */
  check(device: DeviceKey, print: number, client: { readonly address: string }): void {
    if (!this.isGuarded(print)) return;
    const at = this.#find(this.#nameOf(device, client.address));
    if (at < 0) return;
    const left = (this.#pairs[at + lockedUntilAt] ?? 0) - monotonicSeconds();
    if (left <= 0) return;
    // The clocks of two threads differ by a fraction of a millisecond, which would round up to one second too many.
    const seconds = Math.min(left, this.#pairs[at + lockSecondsAt] ?? 0);
    throw rateLimited(
      'Too many requests with credentials that were not accepted (unauthorizedMax). Retry later.',
      seconds,
    );
  }

  /** Counts a 401. */
  failed(device: DeviceKey, client: { readonly address: string }): void {
    const { unauthorizedMax, unauthorizedWindowSeconds, lockoutSecondsMax } = this.#limits;
    if (unauthorizedMax === 0) return;
    const pairs = this.#pairs;
    const now = monotonicSeconds();
    const at = this.#findOrInsert(this.#nameOf(device, client.address));
    if (now - (pairs[at + countedSinceAt] ?? 0) > unauthorizedWindowSeconds) {
      pairs[at + countedSinceAt] = now;
      pairs[at + failuresAt] = 0;
    }
    const failures = (pairs[at + failuresAt] ?? 0) + 1;
    pairs[at + failuresAt] = failures;
    const lastSeconds = pairs[at + lockSecondsAt] ?? 0;
    // Fails again soon after a lockout: locked out at once, for twice as long.
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

  /** Returns the index of the pair's first cell, or -1. */
  #find(pair: number): number {
    const first = this.#setOf(pair);
    for (let at = first; at < first + pairsPerSet * pairCells; at += pairCells) {
      if (this.#pairs[at + fingerprintAt] === pair) return at;
    }
    return -1;
  }

  #findOrInsert(pair: number): number {
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
