import { type DeviceKey, fleetIdOf } from '../../core/identity.ts';

/** One request in this many is sampled. A device must send far more than that to matter. */
const sampleOf = 16;
/** A power of two. */
const samplesMax = 4_096;
const windowMs = 10_000;

export interface Talker {
  device: DeviceKey;
  requestsPerSecond: number;
}

/**
 * Samples which devices sent the last requests, in a ring that costs some nanoseconds a request and never grows.
 * Counted only on demand.
 */
export class TopTalkers {
  readonly #devices: (DeviceKey | undefined)[] = Array(samplesMax).fill(undefined);
  readonly #timesMs = new Float64Array(samplesMax);
  #next = 0;
  #random = 1;

  /** Called on every authenticated request. Samples at random, because clients may alternate regularly. */
  sample(device: DeviceKey): void {
    this.#random = (Math.imul(this.#random, 1_664_525) + 1_013_904_223) | 0;
    if (this.#random >>> 28 !== 0) return;
    this.#devices[this.#next] = device;
    this.#timesMs[this.#next] = performance.now();
    this.#next = (this.#next + 1) & (samplesMax - 1);
  }

  /** Returns the busiest devices of the window, or of as many samples as the ring holds; busiest first. */
  top(limit: number, fleetId?: string): Talker[] {
    const nowMs = performance.now();
    const counts = new Map<DeviceKey, number>();
    let samples = 0;
    let oldestMs = nowMs;
    for (const [index, device] of this.#devices.entries()) {
      const timeMs = this.#timesMs[index] ?? 0;
      if (device === undefined || timeMs < nowMs - windowMs) continue;
      samples += 1;
      oldestMs = Math.min(oldestMs, timeMs);
      if (fleetId === undefined || fleetIdOf(device) === fleetId)
        counts.set(device, (counts.get(device) ?? 0) + 1);
    }
    const seconds = Math.max(1, samples === samplesMax ? nowMs - oldestMs : windowMs) / 1_000;
    return [...counts]
      .sort(([, a], [, b]) => b - a)
      .slice(0, limit)
      .map(([device, count]) => ({
        device,
        requestsPerSecond: Math.round((count * sampleOf * 10) / seconds) / 10,
      }));
  }
}
