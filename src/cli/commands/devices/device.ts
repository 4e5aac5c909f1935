import { SingleBar } from 'cli-progress';
import { type Command, Option } from 'commander';
import { OperatorError } from '../../../core/errors.ts';
import { type AdminClient, pathOf } from '../../admin-client.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { fleetCommand, integerOption, type ListOptions, several, withListOptions } from '../../options.ts';
import { fields, listText, print, printable } from '../../output.ts';
import { addDeviceExport } from './device-export.ts';
import { type DeviceFilterOptions, filterQuery, withDeviceFilter } from './device-filter.ts';
import { addDeviceImport } from './device-import.ts';

interface ChangeOptions extends ConnectionOptions, DeviceFilterOptions {
  fleet: string;
  all?: boolean;
  device?: string[];
  enable?: boolean;
  disable?: boolean;
  addTag?: string[];
  removeTag?: string[];
}

interface Answer {
  changed: number;
  unchanged: number;
  refused: { device_id: string; error: string; msg: string }[];
  next: string | null;
}

const idsPerCall = 500;
const refusalsShownMax = 10;

/** Splits the selection into requests: chunks of ids, or one filter. */
function selections({ all, device, ...options }: ChangeOptions): object[] {
  const { enabled, ...filter } = filterQuery(options);
  const filterInput = { ...filter, ...(enabled !== undefined && { enabled: enabled === 'true' }) };
  const isFiltered = Object.keys(filterInput).length > 0;
  const ways = [all === true, device !== undefined, isFiltered].filter((way) => way).length;
  if (ways !== 1) throw new OperatorError('Select devices in one way: --all, --device ID, or a filter.');
  if (device === undefined) return [all ? { all } : filterInput];
  return Array.from({ length: Math.ceil(device.length / idsPerCall) }, (_, part) => ({
    device_ids: device.slice(part * idsPerCall, (part + 1) * idsPerCall),
  }));
}

async function countOf(client: AdminClient, { fleet, json }: ChangeOptions): Promise<number | undefined> {
  if (json || !process.stderr.isTTY) return undefined;
  const { devices } = await client.request<{ devices: number }>('GET', `${pathOf('fleets', fleet)}/counts`);
  return devices;
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
  const selectors = selections(options);
  const client = connect(options);
  const total = await countOf(client, options);
  const bar =
    total === undefined ? undefined : new SingleBar({ format: 'Devices {value} of at most {total}' });
  bar?.start(total ?? 0, 0);
  const sum: Omit<Answer, 'next'> = { changed: 0, unchanged: 0, refused: [] };
  try {
    for (const select of selectors) {
      let after: string | null | undefined;
      do {
        const json = { select, change, ...(after && { after }) };
        const path = `${pathOf('fleets', options.fleet)}/devices:change`;
        const answer: Answer = await client.request('POST', path, { json });
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
  const refused = sum.refused
    .slice(0, refusalsShownMax)
    .map(({ device_id, msg }) => `\n${device_id}: ${printable(msg)}`);
  const text = `Changed ${sum.changed} devices; ${sum.unchanged} unchanged; ${sum.refused.length} refused.`;
  print(options, sum, text + refused.join(''));
  if (sum.refused.length > 0) process.exitCode = 1;
}

/** `device change`. */
function addDeviceChange(group: Command): void {
  withDeviceFilter(fleetCommand(group, 'change', 'enable, disable or tag many devices at once'))
    .option('--device <id>', 'this device; repeatable', several)
    .option('--all', 'every device of the fleet')
    .option('--enable', 'enable them')
    .addOption(new Option('--disable', 'disable them, and close their streams').conflicts('enable'))
    .option('--add-tag <tag>', 'add this tag; repeatable', several)
    .option('--remove-tag <tag>', 'remove this tag; repeatable', several)
    .action(changeDevices);
}

interface FleetOptions extends ConnectionOptions {
  fleet: string;
}

interface Device {
  fleet_id: string;
  device_id: string;
  name: string;
  tags: string[];
  enabled: boolean;
  created_at: string;
  state: string;
  last_seen: string | null;
  last_address: string | null;
  mailbox_size: number;
}

/** Shown only once by the server. */
interface DeviceSecret {
  fleet_id: string;
  device_id: string;
  device_secret: string;
}

/** Adds a command on one device, given as argument or, for scripts that name everything, as `--device`. */
function deviceCommand(
  group: Command,
  name: string,
  description: string,
  act: (path: string, options: FleetOptions) => Promise<void>,
): Command {
  return fleetCommand(group, `${name} [device_id]`, description)
    .option('--device <id>', 'the device, instead of the argument')
    .action(async (argument: string | undefined, options: FleetOptions & { device?: string }) => {
      const id = argument ?? options.device;
      if (id === undefined) throw new OperatorError('Give the device: its id, or --device ID.');
      await act(pathOf('fleets', options.fleet, 'devices', id), options);
    });
}

/** `device create|import|export|change|list|show|enable|disable|delete|rotate-secret`. */
export function addDeviceCommands(program: Command): void {
  const group = program.command('device').description('create, list and change the devices of a fleet');

  fleetCommand(group, 'create', 'create a device; its secret is shown only once')
    .option('--id <id>', '10 letters or digits; default: random')
    .option('--name <text>', 'a name for people')
    .option('--tag <tag>', 'tag of the device; repeatable', several)
    .action(async (options: FleetOptions & { id?: string; name?: string; tag?: string[] }) => {
      const json = { device_id: options.id, name: options.name, tags: options.tag };
      const path = pathOf('fleets', options.fleet, 'devices');
      const device = await connect(options).request<DeviceSecret>('POST', path, { json });
      print(options, device, fields(device));
    });

  addDeviceImport(group);
  addDeviceExport(group);
  addDeviceChange(group);

  withListOptions(
    withDeviceFilter(fleetCommand(group, 'list', 'list the devices of a fleet, or those that match')),
  ).action(async (options: FleetOptions & ListOptions & DeviceFilterOptions) => {
    const path = pathOf('fleets', options.fleet, 'devices');
    const devices = await connect(options).list<Device>(path, options, filterQuery(options));
    const columns = ['device_id', 'name', 'tags', 'enabled', 'state', 'last_seen', 'mailbox_size'] as const;
    print(options, devices, listText(devices, columns, 'This fleet has no matching devices.'));
  });

  deviceCommand(group, 'show', 'show a device', async (path, options) => {
    const device = await connect(options).request<Device>('GET', path);
    print(options, device, fields(device));
  });

  for (const enabled of [true, false]) {
    const verb = enabled ? 'enable' : 'disable';
    deviceCommand(group, verb, `${verb} a device`, async (path, options) => {
      const device = await connect(options).request<Device>('PATCH', path, { json: { enabled } });
      print(options, device, `${device.device_id} is ${device.enabled ? 'enabled' : 'disabled'}.`);
    });
  }

  deviceCommand(group, 'delete', 'delete a device with its mailbox', async (path, options) => {
    await connect(options).request('DELETE', path);
    print(options, { ok: true }, 'The device is deleted.');
  });

  deviceCommand(
    group,
    'rotate-secret',
    'rotate the secret of a device',
    async (path, options: FleetOptions & { graceSeconds?: number }) => {
      const json = { grace_seconds: options.graceSeconds };
      const device = await connect(options).request<DeviceSecret>('POST', `${path}/rotate-secret`, { json });
      print(options, device, fields(device));
    },
  ).option('--grace-seconds <n>', 'how long the old secret stays valid', integerOption(0, 31_536_000));
}
