import { InvalidArgumentError } from 'commander';

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/**
 * A moment as an option names it: ISO 8601, or so long from now, `90d` or `12h` say. `direction` is where from now
 * a length of time leads.
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
    throw new InvalidArgumentError(
      'It must be a time in ISO 8601, or a length of time like 30m, 12h or 90d.',
    );
  };
}
