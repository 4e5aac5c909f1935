import { InvalidArgumentError } from 'commander';
import { expect, it } from 'vitest';
import { moment, secondsOption } from '../../src/cli/moment.ts';

it('a time is a date, or a duration from now', () => {
  expect(moment('back')('2026-01-31T08:00:00+01:00')).toBe('2026-01-31T07:00:00.000Z');
  const hourMs = 3_600_000;
  for (const [direction, sign] of [
    ['ahead', 1],
    ['back', -1],
  ] as const) {
    const distance = Date.parse(moment(direction)('36h')) - Date.now();
    expect(Math.abs(distance - sign * 36 * hourMs)).toBeLessThan(5_000);
  }
  for (const wrong of ['', 'noon', '1', '1w', '-1h', '2026', '999999999d']) {
    expect(() => moment('back')(wrong), wrong).toThrow(InvalidArgumentError);
  }
});

it('a length of time is seconds, or a duration', () => {
  const read = secondsOption(0, 7 * 86_400);
  expect(['0', '90', '90s', '15m', '12h', '7d'].map(read)).toEqual([0, 90, 90, 900, 43_200, 604_800]);
  for (const wrong of ['', '8d', '1.5h', '-1', '1e3', 'h']) {
    expect(() => read(wrong), wrong).toThrow('It must be from 0 to 604800 seconds, or a duration');
  }
});
