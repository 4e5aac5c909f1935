import { type Command, Option } from 'commander';
import type { DeviceFilterDocument } from '../../../contract/device.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import type { AdminClient } from '../../admin-client.ts';
import { type Selection, selectListed } from '../../confirmation.ts';
import { moment } from '../../moment.ts';
import { type FleetOptions, several } from '../../options.ts';
import { type Filter, filterOf, withFilter } from '../declared.ts';

/** Options and the parameters that they set; `--enabled` and `--disabled` are one. */
const filter = {
  tag: new Option('--tag <tag>', 'only devices with this tag; repeat it to require several').argParser(
    several,
  ),
  id_prefix: new Option('--id-prefix <text>', 'only devices whose id begins with this'),
  name_prefix: new Option(
    '--name-prefix <text>',
    'only devices whose name begins with this, in any letter case',
  ),
  enabled: new Option('--enabled', 'only enabled devices'),
  disabled: new Option('--disabled', 'only disabled devices').conflicts('enabled'),
  state: new Option('--state <state>', 'only devices in this connection state').choices([
    'connected',
    'active',
    'offline',
  ]),
  seen_after: new Option(
    '--seen-after <when>',
    'only devices last seen at this time or later: a time, or a duration ago like 1h',
  ).argParser(moment('back')),
  seen_before: new Option(
    '--seen-before <when>',
    'only devices last seen before this time, likewise, or never',
  ).argParser(moment('back')),
  waiting_before: new Option(
    '--waiting-before <when>',
    'only devices whose mailbox has had the same mail at its head since before this time, likewise',
  ).argParser(moment('back')),
} satisfies Filter<DeviceFilterDocument & { disabled?: boolean }>;

export function withDeviceFilter(command: Command): Command {
  return withFilter(command, filter);
}

/** Selects devices for a bulk command: by name, all of them, or by a filter. */
export interface DeviceSelectionOptions extends FleetOptions {
  all?: boolean;
  device?: string[];
}

/** @throws OperatorError unless the devices are selected in one way. */
export function checkDeviceSelection({ all, device, ...options }: DeviceSelectionOptions): void {
  const isFiltered = Object.keys(filterQuery(options)).length > 0;
  const ways = [all === true, device !== undefined, isFiltered].filter((way) => way).length;
  if (ways !== 1) throw new OperatorError('Select devices in one way: --all, --device ID, or a filter.');
}

/** Counts what is selected. */
export async function selectDevices(
  client: AdminClient,
  { device, ...options }: DeviceSelectionOptions,
): Promise<Selection> {
  if (device !== undefined) return { count: device.length, first: device };
  const path = pathTo('/fleets/{fleet_id}/devices', { fleet_id: options.fleet });
  return selectListed(client.pages(path, filterQuery(options)), ({ device_id }) => device_id);
}

/** Converts the options to a query or selector of the admin API. */
export function filterQuery(options: object): DeviceFilterDocument {
  const { disabled, ...query } = filterOf<DeviceFilterDocument & { disabled?: boolean }>(filter, options);
  return disabled ? { ...query, enabled: false } : query;
}
