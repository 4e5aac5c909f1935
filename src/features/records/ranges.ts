/** Consecutive positions of a log, `to` excluded. */
export interface Range {
  from: number;
  to: number;
}

/** Disjoint ranges of positions, in order. */
export class Ranges {
  #ranges: Range[];

  constructor(ranges: readonly Range[] = []) {
    this.#ranges = [...ranges];
  }

  get size(): number {
    return this.#ranges.length;
  }

  /** Adds a range, merged with those that it touches. Returns these and the result. */
  add(from: number, to: number): { merged: readonly Range[]; range: Range } {
    const first = this.#indexAfter(from - 1);
    const end = this.#ranges.findIndex((range, index) => index >= first && range.from > to);
    const merged = this.#ranges.slice(first, end < 0 ? undefined : end);
    const range = {
      from: Math.min(from, merged[0]?.from ?? from),
      to: Math.max(to, merged.at(-1)?.to ?? to),
    };
    this.#ranges.splice(first, merged.length, range);
    return { merged, range };
  }

  has(position: number): boolean {
    return (this.#ranges[this.#indexAfter(position)]?.from ?? Number.POSITIVE_INFINITY) <= position;
  }

  /** The first position from there on that is in no range. */
  next(position: number): number {
    let next = position;
    for (let index = this.#indexAfter(position); index < this.#ranges.length; index += 1) {
      const { from, to } = this.#ranges[index] as Range;
      if (from > next) break;
      next = to;
    }
    return next;
  }

  /** The parts of [from, to) that are in no range. */
  *gaps(from: number, to: number): Generator<Range> {
    for (let at = this.next(from); at < to; ) {
      const end = Math.min(this.#ranges[this.#indexAfter(at)]?.from ?? to, to);
      yield { from: at, to: end };
      at = this.next(end);
    }
  }

  /** Number of positions of [from, to) that are in a range. */
  count(from: number, to: number): number {
    let count = Math.max(0, to - from);
    for (const gap of this.gaps(from, to)) count -= gap.to - gap.from;
    return count;
  }

  /** Ranges that end at the position or before. */
  upTo(position: number): readonly Range[] {
    return this.#ranges.slice(0, this.#indexAfter(position));
  }

  /** Ranges that end after the position. */
  after(position: number): readonly Range[] {
    return this.#ranges.slice(this.#indexAfter(position));
  }

  /** Removes the ranges that end at the position or before. */
  drop(position: number): void {
    this.#ranges.splice(0, this.#indexAfter(position));
  }

  /** Index of the first range that ends after the position. */
  #indexAfter(position: number): number {
    let low = 0;
    for (let high = this.#ranges.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((this.#ranges[middle] as Range).to > position) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
