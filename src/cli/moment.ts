import { InvalidArgumentError } from 'commander';

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Seconds of a duration like `90s`, `15m`, `12h` or `7d`; undefined if the text is none. */
function durationSeconds(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  return amount === undefined ? undefined : Number(amount) * (unitSeconds[unit] ?? 0);
}

/**
 * Reads an option as a time: ISO 8601, or a duration from now like `90d` or `12h`, counted in `direction`.
 */
export function moment(direction: 'ahead' | 'back'): (text: string) => string {
  return (text) => {
    const seconds = durationSeconds(text);
    const timeMs =
      seconds === undefined
        ? Date.parse(/^\d{4}-\d{2}-\d{2}/.test(text) ? text : '')
        : Date.now() + (direction === 'ahead' ? seconds : -seconds) * 1_000;
    const date = new Date(timeMs);
    if (!Number.isNaN(date.getTime())) return date.toISOString();
    throw new InvalidArgumentError(
      'It must be a time in ISO 8601 like 2026-01-31T08:00:00Z, or a duration like 30m, 12h or 90d.',
    );
  };
}

/** Reads an option as a length of time in whole seconds within bounds: `3600` or `1h`. */
export function secondsOption(minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const value = durationSeconds(/^\d+$/.test(text) ? `${text}s` : text);
    if (value !== undefined && value >= minimum && value <= maximum) return value;
    throw new InvalidArgumentError(
      `It must be from ${minimum} to ${maximum} seconds, or a duration like 30m, 12h or 90d.`,
    );
  };
}
