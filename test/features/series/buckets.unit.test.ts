import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Buckets, bucketSpan } from '../../../src/features/series/buckets.ts';
import { payloadNumbers } from '../../../src/features/series/payload-numbers.ts';

it('each bucket has the minimum, mean, maximum and count of its values, whatever their order', () => {
  const value = fc.integer({ min: -1_000, max: 1_000 });
  const sample = fc.tuple(fc.integer({ min: 0, max: 99 }), value);
  fc.assert(
    fc.property(fc.array(sample, { maxLength: 60 }), fc.integer({ min: 1, max: 150 }), (samples, points) => {
      const span = bucketSpan(1_000, 1_100, points);
      expect(Math.ceil(100 / span.bucketMs)).toBeLessThanOrEqual(points);
      const buckets = new Buckets(span, 1);
      for (const [offset, number] of samples) buckets.add('/a', 1_000 + offset, number);
      const [series] = buckets.series();
      const wanted = new Map<number, number[]>();
      for (const [offset, number] of samples) {
        const bucket = Math.floor(offset / span.bucketMs);
        wanted.set(bucket, [...(wanted.get(bucket) ?? []), number]);
      }
      const rows = series?.buckets.map((bucket, at) => [
        bucket,
        [series.min[at], series.max[at], series.count[at]],
      ]);
      const expected = [...wanted]
        .sort(([a], [b]) => a - b)
        .map(([bucket, numbers]) => [bucket, [Math.min(...numbers), Math.max(...numbers), numbers.length]]);
      expect(rows ?? []).toEqual(expected);
      for (const [at, bucket] of series?.buckets.entries() ?? []) {
        const numbers = wanted.get(bucket) ?? [];
        expect(series?.mean[at]).toBeCloseTo(numbers.reduce((sum, one) => sum + one, 0) / numbers.length, 9);
      }
    }),
  );
});

it('more fields than there is room for are left out, and this is told', () => {
  const buckets = new Buckets(bucketSpan(0, 10, 1), 2);
  for (const field of ['/c', '/a', '/c', '/b']) buckets.add(field, 5, 1);
  expect(buckets.series().map(({ field }) => field)).toEqual(['/a', '/c']);
  expect(buckets.hasMoreFields).toBe(true);
});

it('only finite numbers of a payload are read, where a pointer says', () => {
  const payload = Buffer.from('{"a":1,"b/c":2,"d":{"e":[5,6]},"f":"7","g":1e999,"__proto__":{"h":1}}');
  expect(payloadNumbers(payload, undefined)).toEqual([
    ['/a', 1],
    ['/b~1c', 2],
  ]);
  expect(payloadNumbers(payload, ['/d/e/1', '/b~1c', '/d/e', '/none/of/it', '/toString', '/g'])).toEqual([
    ['/d/e/1', 6],
    ['/b~1c', 2],
  ]);
  expect(payloadNumbers(Buffer.from('not JSON'), undefined)).toEqual([]);
});
