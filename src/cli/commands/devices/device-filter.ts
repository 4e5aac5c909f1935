import { type Command, Option } from 'commander';
import { several } from '../../options.ts';

/** Which devices of a fleet: all of what is given must fit. */
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
    .option('--tag <tag>', 'those that have the tag; given several times, all of the tags', several)
    .option('--name-prefix <text>', 'whose name begins with it')
    .option('--enabled', 'those that are enabled')
    .addOption(new Option('--disabled', 'those that are disabled').conflicts('enabled'))
    .addOption(
      new Option('--state <state>', 'of their connection').choices(['connected', 'active', 'offline']),
    )
    .option('--seen-after <time>', 'last seen then or later, like 2026-11-21T14:00:00Z')
    .option('--seen-before <time>', 'last seen earlier, or never');
}

/** As the admin API takes it, in a query or in a selector. */
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
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as Record<string, string | string[]>;
}
