import { expect, it } from 'vitest';
import { expiryOf, parseTime, timeTextOf } from '../../../src/admin-api/request/times.ts';

it.each([
  ['2026-01-31T08:00:00Z', '2026-01-31T08:00:00.000Z'],
  ['2026-01-31T08:00:00.5Z', '2026-01-31T08:00:00.500Z'],
  ['2026-01-31T08:00:00+02:00', '2026-01-31T06:00:00.000Z'],
])('%s is a time, and shown as %s', (text, shown) => {
  expect(timeTextOf(parseTime('from', text))).toBe(shown);
});

it.each([
  '',
  'now',
  '2026-01-31',
  '2026-13-01T00:00:00Z',
  '2026-01-31T25:00:00Z',
  '1969-12-31T23:59:59Z',
  '1e12',
])('%j is none, which is told by the name of the parameter', (text) => {
  expect(() => parseTime('from', text)).toThrow('from is a time like');
});

it('an expiry lies ahead, or is never', () => {
  expect([expiryOf(null), expiryOf(undefined)]).toEqual([null, null]);
  expect(expiryOf('2999-01-01T00:00:00Z')).toBe(Date.UTC(2999, 0, 1));
  for (const past of ['2020-01-01T00:00:00Z', 'never']) expect(() => expiryOf(past)).toThrow();
});
