import type { PulseDocument } from '../../../contract/monitoring/pulse.ts';

/** What a pulse is drawn from: each value belongs to the minute that ends at its time. */
export interface PulseLines {
  times: readonly number[];
  requests: readonly number[];
  refused: readonly number[];
  active: readonly (number | null)[];
  /** Requests a second of the last whole minute, by kind, those that there were. */
  kinds: readonly { name: string; perSecond: number }[];
}

const minuteSeconds = 60;
/** A minute that has only begun says nothing yet. */
const secondsMin = 10;
const kindNames = ['heartbeats', 'datapoints', 'messages', 'mailbox', 'syncs', 'other'] as const;

/** The lines of a pulse, in requests a second. */
export function pulseLines(pulse: PulseDocument): PulseLines {
  const { from, last_seconds, refused, active } = pulse;
  const minutes = refused.length - (last_seconds < secondsMin ? 1 : 0);
  const fromSeconds = Date.parse(from) / 1_000;
  const secondsOf = (minute: number): number =>
    minute === refused.length - 1 ? last_seconds : minuteSeconds;
  const perSecond = (counts: readonly number[], minute: number): number =>
    (counts[minute] ?? 0) / secondsOf(minute);
  const lineOf = (columns: readonly (readonly number[])[]) =>
    Array.from({ length: minutes }, (_, minute) =>
      columns.reduce((sum, counts) => sum + perSecond(counts, minute), 0),
    );
  const whole = refused.length - 2;
  return {
    times: Array.from(
      { length: minutes },
      (_, minute) => fromSeconds + minute * minuteSeconds + secondsOf(minute),
    ),
    requests: lineOf([...kindNames.map((name) => pulse[name]), refused]),
    refused: lineOf([refused]),
    active: active.slice(0, minutes),
    kinds: kindNames
      .map((name) => ({ name, perSecond: perSecond(pulse[name], whole) }))
      .filter((kind) => kind.perSecond > 0),
  };
}
