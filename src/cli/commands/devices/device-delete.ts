import type { Command } from 'commander';
import { pathTo } from '../../../contract/routes/path.ts';
import { type AdminClient, RefusedError } from '../../admin-client.ts';
import { type BulkOptions, isConfirmed, withConfirmation } from '../../confirmation.ts';
import { connect } from '../../connection.ts';
import { fleetCommand, several } from '../../options.ts';
import { print } from '../../output.ts';
import {
  checkDeviceSelection,
  type DeviceSelectionOptions,
  filterQuery,
  withDeviceFilter,
} from './device-filter.ts';

type DeleteOptions = DeviceSelectionOptions & BulkOptions;

/** Requests at a time, which keep all shards of a small server busy. */
const concurrency = 8;

function devicePath(fleet_id: string, device_id: string) {
  return pathTo('/fleets/{fleet_id}/devices/{device_id}', { fleet_id, device_id });
}

/** The ids that are selected: all of them before the first is deleted, since a list would move on under its cursor. */
async function idsOf(client: AdminClient, { device, ...options }: DeleteOptions): Promise<string[]> {
  if (device !== undefined) return device;
  const ids: string[] = [];
  const path = pathTo('/fleets/{fleet_id}/devices', { fleet_id: options.fleet });
  for await (const { items } of client.pages(path, filterQuery(options))) {
    for (const { device_id } of items) ids.push(device_id);
  }
  return ids;
}

/** Deletes devices, each by its own request; returns how many were there. */
async function deleteAll(
  client: AdminClient,
  fleet: string,
  ids: readonly string[],
): Promise<{ deleted: number; not_found: number }> {
  const outcome = { deleted: 0, not_found: 0 };
  let next = 0;
  const work = async (): Promise<void> => {
    for (let id = ids[next]; id !== undefined; id = ids[next]) {
      next += 1;
      try {
        await client.request('DELETE', devicePath(fleet, id));
        outcome.deleted += 1;
      } catch (error) {
        // Deleted by someone else meanwhile; anything else ends the work of all.
        if (!(error instanceof RefusedError && error.code === 'device_not_found')) {
          next = ids.length;
          throw error;
        }
        outcome.not_found += 1;
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return outcome;
}

async function deleteMany(options: DeleteOptions): Promise<void> {
  checkDeviceSelection(options);
  const client = connect(options);
  const needsConfirmation = options.device === undefined || options.dryRun === true;
  let ids: readonly string[] | undefined;
  const select = async () => {
    ids = await idsOf(client, options);
    return { count: ids.length, first: ids };
  };
  if (needsConfirmation && !(await isConfirmed(['delete', 'devices'], options, select))) return;
  const outcome = await deleteAll(client, options.fleet, ids ?? (await idsOf(client, options)));
  const missing = outcome.not_found === 0 ? '' : `; ${outcome.not_found} not found`;
  print(options, outcome, `Deleted ${outcome.deleted} devices${missing}.`);
  if (outcome.not_found > 0) process.exitCode = 1;
}

/** `device delete`. */
export function addDeviceDelete(group: Command): void {
  const command = withDeviceFilter(
    fleetCommand(group, 'delete [device_id]', 'delete a device with its mailbox, or many devices'),
  )
    .option('--device <id>', 'this device; repeatable', several)
    .option('--all', 'every device of the fleet');
  withConfirmation(command).action(async (argument: string | undefined, options: DeleteOptions) => {
    const named = [...(argument === undefined ? [] : [argument]), ...(options.device ?? [])];
    const [one] = named;
    if (one === undefined || named.length > 1 || options.dryRun) {
      return deleteMany(one === undefined ? options : { ...options, device: named });
    }
    checkDeviceSelection({ ...options, device: named });
    await connect(options).request('DELETE', devicePath(options.fleet, one));
    print(options, { ok: true }, 'The device is deleted.');
  });
}
