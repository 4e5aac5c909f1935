import { type Command, InvalidArgumentError } from 'commander';
import { several } from '../../options.ts';

const durationPattern = /^(\d{1,9})(s|m|h|d)$/;
const unitSeconds: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Reads an option as a time: `1h` ago, or ISO 8601. */
function time(text: string): string {
  const [, count, unit = ''] = durationPattern.exec(text) ?? [];
  if (count !== undefined)
    return new Date(Date.now() - Number(count) * (unitSeconds[unit] ?? 0) * 1_000).toISOString();
  const ms = Date.parse(text);
  if (!Number.isNaN(ms) && /^\d{4}-/.test(text)) return new Date(ms).toISOString();
  throw new InvalidArgumentError(
    'It must be a time like 2026-01-31T12:00:00Z, or how long ago, like 90s, 15m, 1h or 7d.',
  );
}

/** What says which records are wanted. */
export function withRecordOptions(command: Command): Command {
  return command
    .option(
      '--kind <kind>',
      'of this kind: datapoint, message, ...; given several times, of any of them',
      several,
    )
    .option('--schema <name>', 'of this schema; given several times, of any of them', several)
    .option('--device <id>', 'of this device; given several times, of any of them', several)
    .option('--since <time>', 'stored then or later: a time, or how long ago, like 1h', time);
}

export function withUntilOption(command: Command): Command {
  return command.option('--until <time>', 'stored before then, likewise', time);
}
