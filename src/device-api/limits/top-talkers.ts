import { type DeviceKey, fleetIdOf } from '../../core/identity.ts';

/** A power of two. */
const samplesMax = 4_096;
/** Rates are means of so long: a device that calls twice a minute is one, too. */
const windowMs = 60_000;
/** The share of requests that is sampled is looked at so often in a window, and after as many samples as fit a part. */
const looksPerWindow = 4;
const samplesPerLook = samplesMax / looksPerWindow;
/** Beyond one request in this many, a window is shorter. A power of two, 256 at most. */
const sampleOfMax = 256;
/** Samples of a device, where not each request is one, with which its rate is no coincidence. */
const samplesMin = 8;

export interface Talker {
  device: DeviceKey;
  requestsPerSecond: number;
}

/**
 * Samples which devices sent the last requests, in a ring that costs some nanoseconds a request and never grows: each
 * request while there are few, so that it is counted exactly, else one in so many that the ring holds a window.
 * Summed only on demand.
 */
export class TopTalkers {
  readonly #now: () => number;
  readonly #devices: (DeviceKey | undefined)[] = Array(samplesMax).fill(undefined);
  readonly #timesMs = new Float64Array(samplesMax);
  /** Requests that each sample stands for. */
  readonly #weights = new Uint16Array(samplesMax);
  readonly #beganMs: number;
  #next = 0;
  #random = 1;
  #sampleOf = 1;
  #lookedMs: number;
  #sinceLook = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#beganMs = now();
    this.#lookedMs = this.#beganMs;
  }

  /** Called on every authenticated request. Samples at random, because clients may alternate regularly. */
  sample(device: DeviceKey): void {
    this.#random = (Math.imul(this.#random, 1_664_525) + 1_013_904_223) | 0;
    if (((this.#random >>> 24) & (this.#sampleOf - 1)) !== 0) return;
    const nowMs = this.#now();
    this.#devices[this.#next] = device;
    this.#timesMs[this.#next] = nowMs;
    this.#weights[this.#next] = this.#sampleOf;
    this.#next = (this.#next + 1) & (samplesMax - 1);
    this.#sinceLook += 1;
    const isDue = nowMs - this.#lookedMs >= windowMs / looksPerWindow;
    if (isDue || this.#sinceLook >= samplesPerLook) this.#adapt(isDue, nowMs);
  }

  /** Returns the busiest devices of the window, or of as long as the ring reaches back; busiest first. */
  top(limit: number, fleetId?: string): Talker[] {
    const nowMs = this.#now();
    const counts = new Map<DeviceKey, { requests: number; samples: number }>();
    let samples = 0;
    let oldestMs = nowMs;
    for (const [index, device] of this.#devices.entries()) {
      const timeMs = this.#timesMs[index] ?? 0;
      if (device === undefined || timeMs < nowMs - windowMs) continue;
      samples += 1;
      oldestMs = Math.min(oldestMs, timeMs);
      if (fleetId !== undefined && fleetIdOf(device) !== fleetId) continue;
      const { requests, samples: own } = counts.get(device) ?? { requests: 0, samples: 0 };
      counts.set(device, { requests: requests + (this.#weights[index] ?? 0), samples: own + 1 });
    }
    const spanMs = samples === samplesMax ? nowMs - oldestMs : Math.min(windowMs, nowMs - this.#beganMs);
    const seconds = Math.max(1_000, spanMs) / 1_000;
    return [...counts]
      .filter(([, one]) => one.requests === one.samples || one.samples >= samplesMin)
      .sort(([, a], [, b]) => b.requests - a.requests)
      .slice(0, limit)
      .map(([device, { requests }]) => ({
        device,
        requestsPerSecond: Number((requests / seconds).toPrecision(2)),
      }));
  }

  /** Samples fewer requests if the ring would not hold a window of them, more if it would hold several. */
  #adapt(isDue: boolean, nowMs: number): void {
    if (!isDue) this.#sampleOf = Math.min(sampleOfMax, this.#sampleOf * 2);
    else if (this.#sinceLook < samplesPerLook / 4) this.#sampleOf = Math.max(1, this.#sampleOf / 2);
    this.#lookedMs = nowMs;
    this.#sinceLook = 0;
  }
}
