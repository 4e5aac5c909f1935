import { expect, it } from 'vitest';
import {
  endsOf,
  fieldText,
  parametersOf,
  spanOf,
  timeTyped,
} from '../../../../../src/console/screens/device/charts/chart-span.ts';

const hourMs = 3_600_000;
const spanAt = (text: string) => spanOf(new URLSearchParams(text));

it('the span is in the address; what is no span is the last hour', () => {
  expect(spanAt('')).toEqual({ name: '1h', ms: hourMs });
  expect(spanAt('span=7d&schema=a')).toEqual({ name: '7d', ms: 168 * hourMs });
  for (const text of ['span=9d', 'from=2026-01-01', 'from=x&to=y', 'from=2026-01-02&to=2026-01-01']) {
    expect(spanAt(text), text).toEqual({ name: '1h', ms: hourMs });
  }
  const custom = spanAt('span=24h&from=2026-01-01T00:00:00Z&to=2026-01-01T01:00:00Z');
  expect(custom).toMatchObject({ name: 'custom' });
  expect(endsOf(custom, 0)).toEqual([Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 1, 1)]);
  expect(endsOf(spanAt('span=24h'), 100 * hourMs)).toEqual([76 * hourMs, 100 * hourMs]);
});

it('a span takes the place of another in the address, and the usual one is not named', () => {
  expect(parametersOf('1h')).toEqual({ span: undefined, from: undefined, to: undefined });
  expect(parametersOf('7d')).toEqual({ span: '7d', from: undefined, to: undefined });
  expect(parametersOf([0, hourMs])).toEqual({
    span: undefined,
    from: '1970-01-01T00:00:00.000Z',
    to: '1970-01-01T01:00:00.000Z',
  });
});

it('a time is typed with its day or without, as so long ago, or now; a day alone is whole', () => {
  const now = new Date(2026, 10, 26, 14, 30, 5).getTime();
  const at = (text: string, isEnd = false): string | undefined => {
    const ms = timeTyped(text, now, isEnd);
    return ms === undefined ? undefined : fieldText(ms);
  };
  expect(at(' now ')).toBe('2026-11-26 14:30:05');
  expect(at('2 h ago')).toBe('2026-11-26 12:30:05');
  expect(at('30m')).toBe('2026-11-26 14:00:05');
  expect(at('9:05')).toBe('2026-11-26 09:05');
  expect(at('2026-11-25 23:59:58')).toBe('2026-11-25 23:59:58');
  expect(at('2026-11-25T23:59')).toBe('2026-11-25 23:59');
  expect(at('2026-11-25')).toBe('2026-11-25 00:00');
  expect(at('2026-11-25', true)).toBe('2026-11-26 00:00');
  for (const text of ['', 'x', '2026-02-30', '25:00', '2026-13-01 10:00', '11/25/2026'])
    expect(at(text), text).toBeUndefined();
});
