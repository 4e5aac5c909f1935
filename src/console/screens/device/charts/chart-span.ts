/** Spans up to now that charts have a button for, by their names in the address. */
export const namedSpans = [
  ['1h', '1 h', 3_600_000],
  ['24h', '24 h', 86_400_000],
  ['7d', '7 d', 604_800_000],
] as const;
export type SpanName = (typeof namedSpans)[number][0] | 'custom';

/** The time that charts show: up to now, or from one time to another. */
export type ChartSpan =
  | { name: Exclude<SpanName, 'custom'>; ms: number }
  | { name: 'custom'; fromMs: number; toMs: number };

/** The span of an address; the last hour where it names none that exists. */
export function spanOf(parameters: URLSearchParams): ChartSpan {
  const [fromMs, toMs] = ['from', 'to'].map((name) => Date.parse(parameters.get(name) ?? ''));
  if (fromMs !== undefined && toMs !== undefined && fromMs < toMs) return { name: 'custom', fromMs, toMs };
  const [name, , ms] = namedSpans.find(([one]) => one === parameters.get('span')) ?? namedSpans[0];
  return { name, ms };
}

/** Both ends of a span, at a time. */
export function endsOf(span: ChartSpan, nowMs: number): [fromMs: number, toMs: number] {
  return span.name === 'custom' ? [span.fromMs, span.toMs] : [nowMs - span.ms, nowMs];
}

/** A span as parameters of the address, in the place of another. */
export function parametersOf(span: SpanName | readonly [fromMs: number, toMs: number]): {
  span: string | undefined;
  from: string | undefined;
  to: string | undefined;
} {
  if (typeof span === 'string')
    return { span: span === namedSpans[0][0] ? undefined : span, from: undefined, to: undefined };
  const [from, to] = span.map((ms) => new Date(ms).toISOString());
  return { span: undefined, from, to };
}
