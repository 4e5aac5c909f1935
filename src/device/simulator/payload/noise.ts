/**
 * Chance without memory: each value is a hash of what it is for, so that a million devices need no generator each and a
 * seed repeats a fleet whatever the number of processes.
 */
export function hash32(first: number, second: number, third: number): number {
  let mixed = Math.imul(first ^ 0x9e3779b9, 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13) ^ second, 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 16) ^ third, 0x27d4eb2f);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** From 0 up to but not including 1. */
export function chance(first: number, second: number, third: number): number {
  return hash32(first, second, third) / 2 ** 32;
}

/** Samples between two points that a wandering value goes through. */
const stride = 8;

/** The randomness of one payload: that sample of that device. */
export class Noise {
  readonly #seed: number;
  readonly #device: number;
  readonly #sample: number;
  #drawn = 0;

  constructor(seed: number, device: number, sample: number) {
    this.#seed = seed;
    this.#device = device;
    this.#sample = sample;
  }

  /** A fresh value from 0 up to 1. */
  next(): number {
    this.#drawn += 1;
    return chance(this.#seed ^ this.#drawn, this.#device, ~this.#sample);
  }

  /** A value from 0 to 1 that wanders from sample to sample, as a sensor's does; each field has a walk of its own. */
  wander(field: number): number {
    const step = Math.floor(this.#sample / stride);
    const part = (this.#sample % stride) / stride;
    const from = chance(this.#seed, this.#device, Math.imul(field + 1, 0x10001) ^ step);
    const to = chance(this.#seed, this.#device, Math.imul(field + 1, 0x10001) ^ (step + 1));
    return from + (to - from) * part;
  }
}
