import type { DeviceKey } from '../../core/identity.ts';

/** Requests of a device within the last minutes: refused for a rate, and accepted. */
export interface RequestCounts {
  limited: number;
  accepted: number;
}

/** Two spans at a time are kept, so that the counts are those of the last five to ten minutes. */
const spanMs = 300_000;
/** Maximum devices counted per thread; beyond, the one counted first is forgotten. */
const devicesMax = 4_096;
/** A device at its limit is logged once per span of this length, and no more devices than this in one. */
const logMs = 60_000;
const loggedMax = 10;

interface Counted {
  sinceMs: number;
  now: RequestCounts;
  before: RequestCounts;
  loggedAtMs: number;
  /** Refused since it was logged last. */
  unlogged: number;
}

const none: RequestCounts = { limited: 0, accepted: 0 };

/**
 * Counts what devices at a rate limit are refused beside what they are accepted, on one thread. The next request behind
 * a refusal is always taken, so the last outcome alone says nothing.
 */
export class LimitedRequests {
  readonly #devices = new Map<DeviceKey, Counted>();
  #logSpanMs = Number.NEGATIVE_INFINITY;
  #logged = 0;

  /** Counts a refusal; returns how many there were since the device was logged last, if it is to be logged now. */
  refused(device: DeviceKey, nowMs: number): number | undefined {
    const counted = this.#counted(device, nowMs) ?? this.#add(device, nowMs);
    counted.now.limited += 1;
    counted.unlogged += 1;
    if (nowMs - counted.loggedAtMs < logMs || !this.#takeLine(nowMs)) return undefined;
    const { unlogged } = counted;
    counted.loggedAtMs = nowMs;
    counted.unlogged = 0;
    return unlogged;
  }

  /** Counts a request that was accepted of a device that any thread has refused something. */
  accepted(device: DeviceKey, nowMs: number): void {
    (this.#counted(device, nowMs) ?? this.#add(device, nowMs)).now.accepted += 1;
  }

  of(device: DeviceKey, nowMs: number): RequestCounts {
    const counted = this.#counted(device, nowMs);
    return counted === undefined ? none : sumOfCounts([counted.now, counted.before]);
  }

  #counted(device: DeviceKey, nowMs: number): Counted | undefined {
    const counted = this.#devices.get(device);
    if (counted === undefined || nowMs - counted.sinceMs < spanMs) return counted;
    counted.before = nowMs - counted.sinceMs < 2 * spanMs ? counted.now : none;
    counted.now = { ...none };
    counted.sinceMs = nowMs;
    return counted;
  }

  #add(device: DeviceKey, nowMs: number): Counted {
    const counted = {
      sinceMs: nowMs,
      now: { ...none },
      before: none,
      loggedAtMs: Number.NEGATIVE_INFINITY,
      unlogged: 0,
    };
    this.#devices.set(device, counted);
    for (const first of this.#devices.keys()) {
      if (this.#devices.size <= devicesMax) break;
      this.#devices.delete(first);
    }
    return counted;
  }

  #takeLine(nowMs: number): boolean {
    if (nowMs - this.#logSpanMs >= logMs) {
      this.#logSpanMs = nowMs;
      this.#logged = 0;
    }
    this.#logged += 1;
    return this.#logged <= loggedMax;
  }
}

export function sumOfCounts(counts: readonly RequestCounts[]): RequestCounts {
  return {
    limited: counts.reduce((sum, { limited }) => sum + limited, 0),
    accepted: counts.reduce((sum, { accepted }) => sum + accepted, 0),
  };
}
