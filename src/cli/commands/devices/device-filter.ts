import { type Command, Option } from 'commander';
import { several } from '../../options.ts';

/** Filter of devices; all options must match. */
export interface DeviceFilterOptions {
  tag?: string[];
  namePrefix?: string;
  enabled?: boolean;
  disabled?: boolean;
  state?: string;
  seenAfter?: string;
  seenBefore?: string;
}

export function withDeviceFilter(command: Command): Command {
  return command
    .option('--tag <tag>', 'only devices with this tag; repeat it to require several', several)
    .option('--name-prefix <text>', 'only devices whose name begins with this')
    .option('--enabled', 'only enabled devices')
    .addOption(new Option('--disabled', 'only disabled devices').conflicts('enabled'))
    .addOption(
      new Option('--state <state>', 'only devices in this connection state').choices([
        'connected',
        'active',
        'offline',
      ]),
    )
    .option('--seen-after <time>', 'only devices last seen at this time or later, like 2026-11-21T14:00:00Z')
    .option('--seen-before <time>', 'only devices last seen before this time, or never');
}

/** Converts the options to a query or selector of the admin API. */
export function filterQuery(options: DeviceFilterOptions): Record<string, string | string[]> {
  const { tag, namePrefix, enabled, disabled, state, seenAfter, seenBefore } = options;
  const query = {
    tag,
    name_prefix: namePrefix,
    enabled: enabled ? 'true' : disabled ? 'false' : undefined,
    state,
    seen_after: seenAfter,
    seen_before: seenBefore,
  };
  const present = Object.entries(query).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as Record<string, string | string[]>;
}
