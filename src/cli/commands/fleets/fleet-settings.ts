import type { Command } from 'commander';
import type { FleetChangeBody } from '../../../contract/fleet.ts';
import { fleetBounds } from '../../../core/bounds.ts';
import { secondsOption } from '../../moment.ts';
import { integerOption } from '../../options.ts';

type Limit = keyof typeof fleetBounds;

/** Help for each limit, and for its default if that is not the configuration's. */
const limits: Record<Limit, string> = {
  mailbox_mails_max: 'maximum mails per mailbox, or "default"',
  mail_bytes_max: 'maximum bytes of mail that waits, or "default": no limit of its own',
  mail_ttl_seconds: 'TTL of mail, or "default"',
  mail_requeues_max: 'requeues allowed before a mail becomes a dead letter, or "default": unlimited',
  requests_per_second_max: 'requests per second of all devices together, 0 for no limit, or "default"',
  device_requests_per_second_max: 'requests per second of one device, 0 for no limit, or "default"',
  device_bytes_per_second_max: 'bytes per second of one device, 0 for no limit, or "default"',
  active_seconds: 'how long a device counts as active after it was last seen, or "default"',
  log_retention_seconds: 'how long records are retained, or "default"',
  log_bytes_max: 'maximum bytes of records in the log, or "default": no limit of its own',
};
const limitNames = Object.keys(limits) as Limit[];

/** Options of a command that sets a fleet, by the names that commander gives them. */
export type FleetSettings = { name?: string } & Record<string, unknown>;

/** Keeps "default" as text: Commander would turn null into an empty string. */
function orDefault(read: (text: string) => number): (text: string) => number | 'default' {
  return (text) => (text === 'default' ? text : read(text));
}

/** Adds an option for each property of a fleet. */
export function withFleetSettings(command: Command): Command {
  command.option('--name <text>', 'a name for people');
  for (const limit of limitNames) {
    const { minimum, maximum } = fleetBounds[limit];
    const flag = `--${limit.replaceAll('_', '-')} <n>`;
    const option = limit.endsWith('_seconds') ? secondsOption : integerOption;
    command.option(flag, limits[limit], orDefault(option(minimum, maximum)));
  }
  return command;
}

/** The document of the options that are there; `default` becomes null, which resets to the configuration's. */
export function settingsDocument(settings: FleetSettings): FleetChangeBody {
  const settingOf = (limit: Limit): unknown => {
    const value = settings[limit.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())];
    return value === 'default' ? null : value;
  };
  const entries = limitNames.map((limit) => [limit, settingOf(limit)]);
  const present = [['name', settings.name], ...entries].filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as FleetChangeBody;
}
