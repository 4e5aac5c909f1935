import { expect, it } from 'vitest';
import { gapped } from '../../../../../src/console/screens/device/charts/chart-gaps.ts';

/** Means of buckets, with a value in each of these. */
function pointsOf(buckets: readonly number[]): (number | null)[] {
  const values = buckets.map((bucket) => bucket * 10);
  return gapped({ buckets, mean: values, min: values, max: values }, 1_000_000, 2_000).mean;
}

it('a line has a gap where nothing came for longer than three usual intervals, however long these are', () => {
  expect(pointsOf([0, 1, 2, 6, 7, 8])).toEqual([0, 10, 20, null, 60, 70, 80]);
  expect(pointsOf([0, 1, 2, 5, 6, 7])).toEqual([0, 10, 20, 50, 60, 70]);
  expect(pointsOf([0, 50, 100, 250, 300, 451])).toEqual([0, 500, 1_000, 2_500, 3_000, null, 4_510]);
  expect(pointsOf([])).toEqual([]);
  expect(pointsOf([7])).toEqual([70]);
  expect(pointsOf([0, 299])).toEqual([0, 2_990]);
});

it('a point stands in the middle of its bucket, a gap between its neighbours, in all columns alike', () => {
  const columns = { buckets: [0, 1, 9], mean: [1, 2, 3], min: [0, 1, 2], max: [2, 3, 4] };
  expect(gapped(columns, 1_000_000, 2_000)).toEqual({
    times: [1_001, 1_003, 1_011, 1_019],
    mean: [1, 2, null, 3],
    min: [0, 1, null, 2],
    max: [2, 3, null, 4],
  });
});
