import { expect, it } from 'vitest';
import { type LimitUnit, limitText, parseLimit } from '../../../../src/console/screens/fleet/limits.ts';

it.each<[string, LimitUnit, number | null | undefined]>([
  ['', 'count', null],
  ['12', 'count', 12],
  ['1,200', 'per second', 1_200],
  ['12 d', 'count', undefined],
  ['7 d', 'seconds', 604_800],
  ['90 min', 'seconds', 5_400],
  ['90', 'seconds', 90],
  ['a week', 'seconds', undefined],
  ['64 KiB', 'bytes', 65_536],
  ['1.5 MiB', 'bytes per second', 1_572_864],
  ['10 GB', 'bytes', undefined],
  ['-1', 'count', undefined],
])('%j of %s is %j', (text, unit, value) => {
  expect(parseLimit(text, unit)).toBe(value);
});

it('what is shown is read again as the same number', () => {
  for (const unit of ['count', 'seconds', 'bytes', 'per second', 'bytes per second'] as const) {
    for (const value of [
      0,
      1,
      59,
      60,
      61,
      3_600,
      5_400,
      86_399,
      604_800,
      65_536,
      65_537,
      1_048_576,
      10 * 1024 ** 3,
    ])
      expect(parseLimit(limitText(value, unit), unit), `${value} ${unit}`).toBe(value);
  }
});
