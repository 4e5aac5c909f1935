import { afterEach, expect, it, vi } from 'vitest';
import {
  adjustClock,
  exactText,
  fineSpanText,
  parseSpan,
  relativeText,
  serverNow,
  spanText,
} from '../../../src/console/server/clock.ts';

afterEach(() => {
  vi.useRealTimers();
});

it('times are of the server, whose clock is known by the whole seconds of its answers', () => {
  vi.useFakeTimers({ now: 1_700_000_000_000 });
  adjustClock(null);
  adjustClock('no date');
  expect(serverNow()).toBe(Date.now());
  // Less than whole seconds can tell is no difference.
  adjustClock(new Date(Date.now()).toUTCString());
  expect(serverNow()).toBe(Date.now());
  adjustClock(new Date(Date.now() + 60_000).toUTCString());
  expect(serverNow() - Date.now()).toBe(60_500);
  adjustClock(new Date(Date.now() - 500).toUTCString());
});

it.each([
  [0, '0 s', 'now'],
  [999, '0 s', 'now'],
  [59_999, '59 s', '59 s ago'],
  [60_000, '1 min', '1 min ago'],
  [7_199_999, '1 h', '1 h ago'],
  [604_800_000, '7 d', '7 d ago'],
])('%d ms are %s, and that long ago is %s', (ms, span, relative) => {
  expect([spanText(ms), relativeText(0, ms)]).toEqual([span, relative]);
});

it('what was set to 7 d a moment ago is in 7 d', () => {
  expect(relativeText(604_800_000, 900)).toBe('in 7 d');
});

it('a short span is told in milliseconds', () => {
  expect([fineSpanText(9_999), fineSpanText(10_000)]).toEqual(['9,999 ms', '10 s']);
});

it.each<[string, number | undefined]>([
  ['30s', 30_000],
  ['90 min', 5_400_000],
  [' 10m ', 600_000],
  ['2d', 172_800_000],
  ['2', undefined],
  ['d', undefined],
  ['-1 d', undefined],
  ['1 week', undefined],
])('%j is a span of %s ms', (text, ms) => {
  expect(parseSpan(text)).toBe(ms);
});

it('a moment is shown to the millisecond with its zone, and what is none as it is', () => {
  expect(exactText(1_700_000_000_007)).toMatch(/^2023-11-1\d \d\d:\d\d:\d\d\.007 \S+$/);
  expect(exactText('never')).toBe('never');
});
