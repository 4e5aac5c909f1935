import type { DeviceKey } from '../../core/identity.ts';
import type { BucketSpan, FieldSeries } from './buckets.ts';

/** Selects the numbers of a device's datapoints. */
export interface SeriesQuery {
  device: DeviceKey;
  schema: string;
  /** JSON Pointers; undefined: all numbers at the top level. */
  fields: readonly string[] | undefined;
  fromMs: number;
  toMs: number;
  /** Maximum buckets. */
  pointsMax: number;
}

export interface Series extends BucketSpan {
  fields: FieldSeries[];
  /** From there on nothing was left out. */
  completeFromMs: number;
  /** Whether a bound left something out: older records, or fields. */
  isPartial: boolean;
}
