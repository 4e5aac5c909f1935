export const minuteMs = 60_000;

/** The minute of a time. */
export function minuteOf(timeMs: number): number {
  return Math.floor(timeMs / minuteMs);
}

/** A ring of the last minutes, each with as many cells as a blank one. */
export class MinuteRing {
  readonly #minutes: number;
  readonly #blank: readonly number[];
  readonly #cells: Float64Array;
  #minute: number;

  constructor(minutes: number, blank: readonly number[], minute: number) {
    this.#minutes = minutes;
    this.#blank = blank;
    this.#cells = new Float64Array(minutes * blank.length);
    this.#minute = minute;
    this.#clear(0, minutes);
  }

  /** The cells of this minute, which is none before the last one asked for. */
  at(minute: number): Float64Array {
    const passed = Math.min(minute - this.#minute, this.#minutes);
    for (let next = 1; next <= passed; next += 1) {
      const slot = (minute - passed + next) % this.#minutes;
      this.#clear(slot, slot + 1);
    }
    this.#minute = Math.max(minute, this.#minute);
    return this.#slot(minute);
  }

  /** The cells of the minutes that it has from one on, the last of them being now, and when the first of them began. */
  since(known: number, last: number): { fromMs: number; minutes: Float64Array[] } {
    this.at(last);
    const first = Math.max(known, last - this.#minutes + 1);
    const minutes = Array.from({ length: last - first + 1 }, (_, index) => this.#slot(first + index));
    return { fromMs: first * minuteMs, minutes };
  }

  #slot(minute: number): Float64Array {
    const start = (minute % this.#minutes) * this.#blank.length;
    return this.#cells.subarray(start, start + this.#blank.length);
  }

  #clear(from: number, to: number): void {
    for (let slot = from; slot < to; slot += 1) this.#slot(slot).set(this.#blank);
  }
}
