import { expect, it } from 'vitest';
import { endsOf, parametersOf, spanOf } from '../../../../../src/console/screens/device/charts/chart-span.ts';

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
