import { type Command, Option } from 'commander';
import type { ChangedDevicesDocument, DeviceChangesBody } from '../../../contract/device.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import type { AdminClient } from '../../admin-client.ts';
import { type BulkOptions, isConfirmed, withConfirmation } from '../../confirmation.ts';
import { connect } from '../../connection.ts';
import { fleetCommand, several } from '../../options.ts';
import { print, printable, progressBar } from '../../output.ts';
import {
  checkDeviceSelection,
  type DeviceSelectionOptions,
  filterQuery,
  selectDevices,
  withDeviceFilter,
} from './device-filter.ts';

interface ChangeOptions extends DeviceSelectionOptions, BulkOptions {
  enable?: boolean;
  disable?: boolean;
  addTag?: string[];
  removeTag?: string[];
}

const idsPerCall = 500;
const refusalsShownMax = 10;

/** Splits the selection into requests: chunks of ids, or one filter. */
function selectors({ all, device, ...options }: ChangeOptions): DeviceChangesBody['select'][] {
  if (device === undefined) return [all ? { all } : filterQuery(options)];
  return Array.from({ length: Math.ceil(device.length / idsPerCall) }, (_, part) => ({
    device_ids: device.slice(part * idsPerCall, (part + 1) * idsPerCall),
  }));
}

async function changeDevices(options: ChangeOptions): Promise<void> {
  const { enable, disable, addTag, removeTag } = options;
  const change = {
    ...((enable || disable) && { enabled: enable === true }),
    ...(addTag && { add_tags: addTag }),
    ...(removeTag && { remove_tags: removeTag }),
  };
  if (Object.keys(change).length === 0) {
    throw new OperatorError('Nothing to change: give --enable, --disable, --add-tag or --remove-tag.');
  }
  checkDeviceSelection(options);
  const client = connect(options);
  // Devices named one by one are not asked for again.
  const needsConfirmation = options.device === undefined || options.dryRun === true;
  const verb = enable ? 'enable' : disable ? 'disable' : 'change the tags of';
  if (
    needsConfirmation &&
    !(await isConfirmed([verb, 'devices'], options, () => selectDevices(client, options)))
  )
    return;
  const sum = await changeAll(client, options, change);
  const refused = sum.refused
    .slice(0, refusalsShownMax)
    .map(({ device_id, msg }) => `\n${device_id}: ${printable(msg)}`);
  const text = `Changed ${sum.changed} devices; ${sum.unchanged} unchanged; ${sum.refused.length} refused.`;
  print(options, sum, text + refused.join(''));
  if (sum.refused.length > 0) process.exitCode = 1;
}

type Sum = Omit<ChangedDevicesDocument, 'changed_ids' | 'next'>;

/** Changes what is selected, call by call, and adds up the outcomes. */
async function changeAll(
  client: AdminClient,
  options: ChangeOptions,
  change: DeviceChangesBody['change'],
): Promise<Sum> {
  const path = pathTo('/fleets/{fleet_id}/devices:change', { fleet_id: options.fleet });
  const bar = progressBar('Devices {value} of at most {total}', options);
  if (bar !== undefined) {
    const counts = pathTo('/fleets/{fleet_id}/counts', { fleet_id: options.fleet });
    const { devices } = await client.request('GET', counts);
    bar.start(devices, 0);
  }
  const sum: Sum = { changed: 0, unchanged: 0, refused: [] };
  try {
    for (const select of selectors(options)) {
      let after: string | null | undefined;
      do {
        const json = { select, change, ...(after && { after }) };
        const answer: ChangedDevicesDocument = await client.request('POST', path, { json });
        sum.changed += answer.changed;
        sum.unchanged += answer.unchanged;
        sum.refused.push(...answer.refused);
        bar?.update(sum.changed + sum.unchanged);
        after = answer.next;
      } while (after !== null);
    }
  } finally {
    bar?.stop();
  }
  return sum;
}

/** `device change`. */
export function addDeviceChange(group: Command): void {
  const command = withDeviceFilter(
    fleetCommand(group, 'change', 'enable, disable or tag many devices at once'),
  )
    .option('--device <id>', 'this device; repeatable', several)
    .option('--all', 'every device of the fleet')
    .option('--enable', 'enable them')
    .addOption(new Option('--disable', 'disable them, and close their streams').conflicts('enable'))
    .option('--add-tag <tag>', 'add this tag; repeatable', several)
    .option('--remove-tag <tag>', 'remove this tag; repeatable', several);
  withConfirmation(command).action(changeDevices);
}
