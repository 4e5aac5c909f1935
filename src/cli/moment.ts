import { InvalidArgumentError } from 'commander';

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/**
 * Reads an option as a time: ISO 8601, or a duration from now like `90d` or `12h`, counted in `direction`.
 */
export function moment(direction: 'ahead' | 'back'): (text: string) => string {
  return (text) => {
    const [, amount, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
    const milliseconds = Number(amount) * (unitSeconds[unit] ?? 0) * 1_000;
    const timeMs =
      amount === undefined
        ? Date.parse(/^\d{4}-\d{2}-\d{2}/.test(text) ? text : '')
        : Date.now() + (direction === 'ahead' ? milliseconds : -milliseconds);
    const date = new Date(timeMs);
    if (!Number.isNaN(date.getTime())) return date.toISOString();
    throw new InvalidArgumentError('It must be a time in ISO 8601, or a duration like 30m, 12h or 90d.');
  };
}
