import type { DeviceKey } from '../core/identity.ts';

/** One request in so many is looked at: what a device must send to be seen is far above that. */
const sampleOf = 16;
const countersMax = 256;
const windowSeconds = 10;

export interface Talker {
  device: DeviceKey;
  requestsPerSecond: number;
}

/**
 * The devices that ask most, about, in memory that does not grow: a sample of requests, counted by the space-saving
 * algorithm (Metwally et al., 2005), in which a newcomer takes over the smallest count. Whoever sends more than a
 * 256th of all requests is among them for certain.
 */
export class Talkers {
  readonly #timer: NodeJS.Timeout;
  #counts = new Map<DeviceKey, number>();
  #last = new Map<DeviceKey, number>();
  #random = 1;

  constructor() {
    this.#timer = setInterval(() => this.turn(), windowSeconds * 1_000).unref();
  }

  /** Begins another window. */
  turn(): void {
    this.#last = this.#counts;
    this.#counts = new Map();
  }

  /** On every authenticated request: drawn by lot, for clients may take turns in step. */
  heard(device: DeviceKey): void {
    this.#random = (Math.imul(this.#random, 1_664_525) + 1_013_904_223) | 0;
    if (this.#random >>> 28 === 0) this.#count(device);
  }

  /** Of the last whole window, the loudest first. */
  loudest(limit: number): Talker[] {
    return [...this.#last]
      .sort(([, a], [, b]) => b - a)
      .slice(0, limit)
      .map(([device, count]) => ({ device, requestsPerSecond: (count * sampleOf) / windowSeconds }));
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #count(device: DeviceKey): void {
    const counts = this.#counts;
    const count = counts.get(device);
    if (count !== undefined || counts.size < countersMax) {
      counts.set(device, (count ?? 0) + 1);
      return;
    }
    let smallest: DeviceKey | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const [other, otherCount] of counts) {
      if (otherCount >= least) continue;
      smallest = other;
      least = otherCount;
      if (least === 1) break;
    }
    if (smallest !== undefined) counts.delete(smallest);
    counts.set(device, least + 1);
  }
}
