import { monotonicSeconds } from '../../core/clock.ts';
import type { Settings } from '../../core/config/settings.ts';
import { rateLimited } from '../../core/errors.ts';
import { type DeviceKey, deviceKeyLength, deviceKeyOf, fleetIdLength } from '../../core/identity.ts';
import type { Lockout, LockoutFilter, LockoutList } from '../../domain/devices/lockout.ts';
import type { Page } from '../../domain/page.ts';
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

/** Who is locked out, as text, padded with zeros: a device key or the fleet of a claim, and the address. */
const subjectBytes = deviceKeyLength;
const nameBytes = subjectBytes + 22;

/** Guard cells, a power of two. Devices that share one are only checked in full more often. */
const guardCount = 65_536;

/** Bytes that a name must have at a place. */
interface NameBytes {
  from: number;
  bytes: Buffer;
}

/** Bytes that the names of matching lockouts have. Ids that were checked at the edge fill their fields. */
function wantedBytes({ fleetId, deviceId, address }: LockoutFilter): NameBytes[] {
  const field = (text: string | undefined, from: number, to: number): NameBytes[] =>
    text === undefined ? [] : [{ from, bytes: Buffer.from(text.padEnd(to - from, '\0'), 'latin1') }];
  return [
    ...field(deviceId, fleetIdLength, subjectBytes),
    ...field(fleetId, 0, fleetIdLength),
    ...field(address, subjectBytes, nameBytes),
  ];
}

/** Shared by all workers, because a client's connections are spread over them. */
export interface LockoutMemory {
  seed: string;
  pairs: SharedArrayBuffer;
  /** Written only when a lockout begins: without any, their pages are not even resident. */
  names: SharedArrayBuffer;
  guards: SharedArrayBuffer;
}

export function allocateLockouts(seed: string): LockoutMemory {
  return {
    seed,
    pairs: new SharedArrayBuffer(pairCount * pairCells * Float64Array.BYTES_PER_ELEMENT),
    names: new SharedArrayBuffer(pairCount * nameBytes),
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
export class Lockouts implements LockoutList {
  readonly #pairs: Float64Array<SharedArrayBuffer>;
  readonly #names: Buffer;
  /** When the last lockout of a device ends, from any address; 0 if there is none. */
  readonly #guards: Float64Array<SharedArrayBuffer>;
  readonly #seed: string;
  readonly #settings: Settings<LockoutLimits>;

  constructor({ seed, pairs, names, guards }: LockoutMemory, settings: Settings<LockoutLimits>) {
    this.#seed = seed;
    this.#pairs = new Float64Array(pairs);
    this.#names = Buffer.from(names);
    this.#guards = new Float64Array(guards);
    this.#settings = settings;
  }

  /** Costs a hash: callers that ask often cache it. */
  fingerprint(device: DeviceKey): number {
    return fingerprint(this.#seed, device);
  }

  /** True if the device of this fingerprint may be locked out from some address. */
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

  /** Counts a 401. `subject`: what a list shows instead of the device key. */
  failed(device: DeviceKey, client: { readonly address: string }, subject: string = device): void {
    const { unauthorizedMax, unauthorizedWindowSeconds, lockoutSecondsMax } = this.#settings.current;
    if (unauthorizedMax === 0) return;
    const pairs = this.#pairs;
    const now = monotonicSeconds();
    const { address } = client;
    const at = this.#findOrInsert(this.#nameOf(device, address));
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
    this.#writeName(at, subject, address);
    pairs[at + lockSecondsAt] = seconds;
    pairs[at + lockedUntilAt] = now + seconds;
    const guard = this.fingerprint(device) % guardCount;
    this.#guards[guard] = Math.max(this.#guards[guard] ?? 0, now + seconds);
  }

  list(filter: LockoutFilter, after: string, limit: number): Page<Lockout> {
    const items: Lockout[] = [];
    let last = -1;
    for (const [at, lockout] of this.#each(filter, after === '' ? 0 : (Number(after) + 1) * pairCells)) {
      if (items.length === limit) return { items, next: String(last) };
      items.push(lockout);
      last = at / pairCells;
    }
    return { items, next: null };
  }

  get count(): number {
    const now = monotonicSeconds();
    let locked = 0;
    for (let at = lockedUntilAt; at < this.#pairs.length; at += pairCells) {
      if ((this.#pairs[at] ?? 0) > now) locked += 1;
    }
    return locked;
  }

  lift(filter: LockoutFilter): number {
    let lifted = 0;
    for (const [at] of this.#each(filter, 0)) {
      this.#pairs.fill(0, at, at + pairCells);
      lifted += 1;
    }
    return lifted;
  }

  /** A device that its guard says is free costs nothing; otherwise this scans the whole table, for about a millisecond. */
  *#each(filter: LockoutFilter, from: number): Generator<[at: number, lockout: Lockout]> {
    const { fleetId, deviceId } = filter;
    const isOfDevice = fleetId !== undefined && deviceId !== undefined;
    if (isOfDevice && !this.isGuarded(this.fingerprint(deviceKeyOf(fleetId, deviceId)))) return;
    const wanted = wantedBytes(filter);
    const now = monotonicSeconds();
    for (let at = from; at < this.#pairs.length; at += pairCells) {
      const left = (this.#pairs[at + lockedUntilAt] ?? 0) - now;
      if (left <= 0 || !this.#hasName(at, wanted)) continue;
      yield [at, { ...this.#readName(at), untilMs: Math.round(Date.now() + left * 1_000) }];
    }
  }

  /** Compares bytes where they lie: making texts of a full table would take a tenth of a second. */
  #hasName(at: number, wanted: readonly NameBytes[]): boolean {
    const nameAt = (at / pairCells) * nameBytes;
    for (const { from, bytes } of wanted) {
      // Ids of one fleet differ at their ends.
      for (let n = bytes.length - 1; n >= 0; n -= 1) {
        if (this.#names[nameAt + from + n] !== bytes[n]) return false;
      }
    }
    return true;
  }

  #writeName(at: number, subject: string, address: string): void {
    const nameAt = (at / pairCells) * nameBytes;
    const name = subject.slice(0, subjectBytes).padEnd(subjectBytes, '\0') + address;
    this.#names.fill(0, nameAt, nameAt + nameBytes);
    this.#names.write(name, nameAt, nameBytes, 'latin1');
  }

  #readName(at: number): Omit<Lockout, 'untilMs'> {
    const nameAt = (at / pairCells) * nameBytes;
    const name = this.#names.toString('latin1', nameAt, nameAt + nameBytes);
    const subject = name.slice(0, subjectBytes).replaceAll('\0', '');
    return {
      fleetId: subject.slice(0, fleetIdLength) || undefined,
      deviceId: subject.slice(fleetIdLength) || undefined,
      address: name.slice(subjectBytes).replaceAll('\0', ''),
    };
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
