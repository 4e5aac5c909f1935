import { type Command, Option } from 'commander';
import type { DeviceFilterDocument, DeviceState } from '../../../contract/device.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import type { AdminClient } from '../../admin-client.ts';
import { type Selection, selectListed } from '../../confirmation.ts';
import { moment } from '../../moment.ts';
import { type FleetOptions, several } from '../../options.ts';

/** Filter of devices; all options must match. */
export interface DeviceFilterOptions {
  tag?: string[];
  idPrefix?: string;
  namePrefix?: string;
  enabled?: boolean;
  disabled?: boolean;
  state?: DeviceState;
  seenAfter?: string;
  seenBefore?: string;
  waitingBefore?: string;
}

export function withDeviceFilter(command: Command): Command {
  return command
    .option('--tag <tag>', 'only devices with this tag; repeat it to require several', several)
    .option('--id-prefix <text>', 'only devices whose id begins with this')
    .option('--name-prefix <text>', 'only devices whose name begins with this, in any letter case')
    .option('--enabled', 'only enabled devices')
    .addOption(new Option('--disabled', 'only disabled devices').conflicts('enabled'))
    .addOption(
      new Option('--state <state>', 'only devices in this connection state').choices([
        'connected',
        'active',
        'offline',
      ]),
    )
    .option(
      '--seen-after <when>',
      'only devices last seen at this time or later: a time, or a duration ago like 1h',
      moment('back'),
    )
    .option(
      '--seen-before <when>',
      'only devices last seen before this time, likewise, or never',
      moment('back'),
    )
    .option(
      '--waiting-before <when>',
      'only devices whose mailbox has had the same mail at its head since before this time, likewise',
      moment('back'),
    );
}

/** Selects devices for a bulk command: by name, all of them, or by a filter. */
export interface DeviceSelectionOptions extends FleetOptions, DeviceFilterOptions {
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
export function filterQuery(options: DeviceFilterOptions): DeviceFilterDocument {
  const { tag, idPrefix, namePrefix, enabled, disabled, state } = options;
  const query = {
    tag,
    id_prefix: idPrefix,
    name_prefix: namePrefix,
    enabled: enabled ? true : disabled ? false : undefined,
    state,
    seen_after: options.seenAfter,
    seen_before: options.seenBefore,
    waiting_before: options.waitingBefore,
  };
  const present = Object.entries(query).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as DeviceFilterDocument;
}
