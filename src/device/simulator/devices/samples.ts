import { type Route, routes } from './orders.ts';

/** Answers of half a second; beyond, samples are left out, and what is left out is counted. */
const samplesMax = 200_000;
const numbers = 3;

/** Times of answers until they are reported. */
export class Samples {
  readonly #values = new Uint32Array(numbers * samplesMax);
  #count = 0;
  /** Answers that there was no room for. */
  left = 0;

  add(route: Route, responseMs: number, serviceMs: number): void {
    if (this.#count === samplesMax) {
      this.left += 1;
      return;
    }
    const at = numbers * this.#count;
    this.#values[at] = routes.indexOf(route);
    this.#values[at + 1] = Math.max(1, responseMs * 1_000);
    this.#values[at + 2] = Math.max(1, serviceMs * 1_000);
    this.#count += 1;
  }

  take(): Uint32Array {
    const taken = this.#values.slice(0, numbers * this.#count);
    this.#count = 0;
    return taken;
  }
}
