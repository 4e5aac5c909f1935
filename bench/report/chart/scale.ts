/** Maps a value to its position on an axis, with the values to write under the axis. */
export interface Scale {
  at(value: number): number;
  ticks: readonly number[];
}

/** From 0 to a round number beyond `maximum`, in steps of 1, 2 or 5 times a power of ten. */
export function linearScale(maximum: number, from: number, to: number, steps = 5): Scale {
  const rough = (maximum || 1) / steps;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  const count = Math.ceil(maximum / step) || 1;
  const ticks = Array.from({ length: count + 1 }, (_, index) => index * step);
  return { at: (value) => from + ((to - from) * value) / (count * step), ticks };
}

/** Whole powers of ten around all values, which must be above 0. */
export function logarithmicScale(values: readonly number[], from: number, to: number): Scale {
  const first = Math.floor(Math.log10(Math.min(...values)));
  const last = Math.max(Math.ceil(Math.log10(Math.max(...values))), first + 1);
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index));
  return { at: (value) => from + ((to - from) * (Math.log10(value) - first)) / (last - first), ticks };
}

/** The values themselves, evenly spaced. */
export function ordinalScale(values: readonly number[], from: number, to: number): Scale {
  const ticks = [...new Set(values)].sort((a, b) => a - b);
  const step = ticks.length > 1 ? (to - from) / (ticks.length - 1) : 0;
  return { at: (value) => from + step * ticks.indexOf(value), ticks };
}
