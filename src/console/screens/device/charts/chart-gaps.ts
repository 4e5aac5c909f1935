/** Points of a line, as columns in order of time; null where there is a gap. */
export interface GappedColumns {
  /** Seconds: the middle of each bucket. */
  times: number[];
  mean: (number | null)[];
  min: (number | null)[];
  max: (number | null)[];
}

/** A device that is silent for longer than so many of its usual intervals has a gap. */
const usualIntervalsMax = 3;

/** The interval that half of the points keep, in buckets. */
function usualInterval(buckets: readonly number[]): number {
  const intervals = buckets.slice(1).map((bucket, index) => bucket - (buckets[index] ?? 0));
  return intervals.sort((one, other) => one - other)[Math.floor((intervals.length - 1) / 2)] ?? 1;
}

/** Columns of buckets as points in time, with a gap where nothing came for long. */
export function gapped(
  columns: {
    buckets: readonly number[];
    mean: readonly number[];
    min: readonly number[];
    max: readonly number[];
  },
  fromMs: number,
  bucketMs: number,
): GappedColumns {
  const { buckets, mean, min, max } = columns;
  const gapMin = usualIntervalsMax * usualInterval(buckets);
  const points: GappedColumns = { times: [], mean: [], min: [], max: [] };
  const secondsOf = (bucket: number): number => (fromMs + (bucket + 0.5) * bucketMs) / 1_000;
  for (const [index, bucket] of buckets.entries()) {
    const before = buckets[index - 1];
    if (before !== undefined && bucket - before > gapMin) {
      points.times.push(secondsOf((before + bucket) / 2));
      for (const column of [points.mean, points.min, points.max]) column.push(null);
    }
    points.times.push(secondsOf(bucket));
    points.mean.push(mean[index] ?? null);
    points.min.push(min[index] ?? null);
    points.max.push(max[index] ?? null);
  }
  return points;
}
