import { exactText, parseSpan } from '../../../server/clock.ts';

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

const dayMs = 86_400_000;

/** Hint of the fields of a span: examples of times that they take. */
export const takenTimes = '2026-11-26 14:30, 14:30, 2 h ago or now';

/**
 * A time that was typed, in the time zone of the reader: a day with its time or alone, a time of today, so long ago, now.
 * A day alone is its beginning, and of the end of a span its end. Undefined for another text.
 */
export function timeTyped(text: string, nowMs: number, isEnd: boolean): number | undefined {
  const wanted = text.trim();
  if (wanted === 'now') return nowMs;
  const agoMs = parseSpan(wanted.replace(/\s*ago$/, ''));
  if (agoMs !== undefined) return nowMs - agoMs;
  const today = exactText(nowMs).slice(0, 10);
  const found = /^(\d{4}-\d\d-\d\d)?(?:[ T]?(\d?\d:\d\d)(:\d\d)?)?$/.exec(wanted);
  const [, day = today, time, seconds = ':00'] = found ?? [];
  if (found === null || wanted === '') return undefined;
  const minute = (time ?? '00:00').padStart(5, '0');
  const ms = Date.parse(`${day}T${minute}${seconds}`);
  // The parser takes February 30 for a day of March.
  if (Number.isNaN(ms) || exactText(ms).slice(0, 10) !== day) return undefined;
  return time === undefined && isEnd ? ms + dayMs : ms;
}

/** A time as its field has it: to the second, in the time zone of the reader. */
export function fieldText(ms: number): string {
  return exactText(ms).slice(0, 19).replace(/:00$/, '');
}

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
