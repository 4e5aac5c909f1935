/** The values of one field in the buckets that have any, as columns in order of time. */
export interface FieldSeries {
  field: string;
  /** Numbers of the buckets, from 0. */
  buckets: number[];
  min: number[];
  mean: number[];
  max: number[];
  count: number[];
}

/** Division of a time span into buckets of equal length. */
export interface BucketSpan {
  fromMs: number;
  toMs: number;
  bucketMs: number;
}

/** Divides a span into at most so many buckets of whole milliseconds. */
export function bucketSpan(fromMs: number, toMs: number, pointsMax: number): BucketSpan {
  return { fromMs, toMs, bucketMs: Math.max(1, Math.ceil((toMs - fromMs) / pointsMax)) };
}

interface Bucket {
  min: number;
  max: number;
  sum: number;
  count: number;
}

/** Collects numbers of several fields by bucket, in any order of time. */
export class Buckets {
  readonly #span: BucketSpan;
  readonly #fieldsMax: number;
  readonly #fields = new Map<string, Map<number, Bucket>>();
  /** True if there were more fields than are collected. */
  hasMoreFields = false;

  constructor(span: BucketSpan, fieldsMax: number) {
    this.#span = span;
    this.#fieldsMax = fieldsMax;
  }

  add(field: string, timeMs: number, value: number): void {
    const { fromMs, bucketMs } = this.#span;
    let buckets = this.#fields.get(field);
    if (buckets === undefined) {
      this.hasMoreFields ||= this.#fields.size >= this.#fieldsMax;
      if (this.#fields.size >= this.#fieldsMax) return;
      buckets = new Map();
      this.#fields.set(field, buckets);
    }
    const number = Math.floor((timeMs - fromMs) / bucketMs);
    const bucket = buckets.get(number);
    if (bucket === undefined) buckets.set(number, { min: value, max: value, sum: value, count: 1 });
    else {
      bucket.min = Math.min(bucket.min, value);
      bucket.max = Math.max(bucket.max, value);
      bucket.sum += value;
      bucket.count += 1;
    }
  }

  /** In the order of the fields' names. */
  series(): FieldSeries[] {
    const fields = [...this.#fields].sort(([a], [b]) => (a < b ? -1 : 1));
    return fields.map(([field, buckets]) => {
      const sorted = [...buckets].sort(([a], [b]) => a - b);
      const column = (value: (bucket: Bucket) => number): number[] =>
        sorted.map(([, bucket]) => value(bucket));
      return {
        field,
        buckets: sorted.map(([number]) => number),
        min: column(({ min }) => min),
        // A sum beyond the largest number has no mean; its bounds are an honest one.
        mean: column(({ min, max, sum, count }) => Math.min(max, Math.max(min, sum / count))),
        max: column(({ max }) => max),
        count: column(({ count }) => count),
      };
    });
  }
}
