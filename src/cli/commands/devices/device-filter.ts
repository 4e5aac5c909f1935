import { type Command, Option } from 'commander';
import type { DeviceFilterDocument } from '../../../contract/device.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import type { AdminClient } from '../../admin-client.ts';
import { type Selection, selectListed } from '../../confirmation.ts';
import { moment } from '../../moment.ts';
import { type FleetOptions, option, several } from '../../options.ts';
import { type OptionsOf, valuesOf, withOptions } from '../declared.ts';

/** Options and the parameters that they set; `--enabled` and `--disabled` are one. */
export const deviceOptions = {
  tag: option('--tag <tag>', 'only devices with this tag; repeat it to require several', several),
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
  seen_after: option(
    '--seen-after <when>',
    'only devices last seen at this time or later: a time, or a duration ago like 1h',
    moment('back'),
  ),
  seen_before: option(
    '--seen-before <when>',
    'only devices last seen before this time, likewise, or never',
    moment('back'),
  ),
  silent_after: option(
    '--silent-after <when>',
    'only devices that were active and fell silent at this time or later, likewise',
    moment('back'),
  ),
  refused: new Option('--refused <reason>', 'only devices that the node you ask refuses now').choices([
    'any',
    'wrong_secret',
    'schema_mismatch',
    'rate_limited',
    'disabled',
    'other',
  ]),
  waiting_before: option(
    '--waiting-before <when>',
    'only devices whose mailbox has had the same mail at its head since before this time, likewise',
    moment('back'),
  ),
} satisfies OptionsOf<DeviceFilterDocument & { disabled?: boolean }>;

export function withDeviceFilter(command: Command): Command {
  return withOptions(command, deviceOptions);
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
  const { disabled, ...query } = valuesOf<DeviceFilterDocument & { disabled?: boolean }>(
    deviceOptions,
    options,
  );
  return disabled ? { ...query, enabled: false } : query;
}
