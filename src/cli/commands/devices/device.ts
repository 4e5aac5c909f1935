import type { Command } from 'commander';
import { OperatorError } from '../../../core/errors.ts';
import { pathOf } from '../../admin-client.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { fleetCommand, integerOption, type ListOptions, several, withListOptions } from '../../options.ts';
import { fields, listText, print } from '../../output.ts';
import { addDeviceChange } from './device-change.ts';
import { addDeviceExport } from './device-export.ts';
import { type DeviceFilterOptions, filterQuery, withDeviceFilter } from './device-filter.ts';
import { addDeviceImport } from './device-import.ts';

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

/** What the server shows once. */
interface DeviceSecret {
  fleet_id: string;
  device_id: string;
  device_secret: string;
}

/** A command on one device, which is its argument or, for scripts that name everything, `--device`. */
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
      if (id === undefined) throw new OperatorError('Name the device: its id, or --device ID.');
      await act(pathOf('fleets', options.fleet, 'devices', id), options);
    });
}

/** `device create|import|export|change|list|show|enable|disable|delete|rotate-secret`. */
export function addDeviceCommands(program: Command): void {
  const group = program.command('device').description('make, list and change the devices of a fleet');

  fleetCommand(group, 'create', 'make a device; its secret is shown this once')
    .option('--id <id>', '10 letters or digits; without it, random ones')
    .option('--name <text>', 'a name for people')
    .option('--tag <tag>', 'a tag; may be given several times', several)
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
    withDeviceFilter(fleetCommand(group, 'list', 'list the devices of a fleet, or those that fit')),
  ).action(async (options: FleetOptions & ListOptions & DeviceFilterOptions) => {
    const path = pathOf('fleets', options.fleet, 'devices');
    const devices = await connect(options).list<Device>(path, options, filterQuery(options));
    const columns = ['device_id', 'name', 'tags', 'enabled', 'state', 'last_seen', 'mailbox_size'] as const;
    print(options, devices, listText(devices, columns, 'This fleet has no such devices.'));
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
    'give a device a new secret',
    async (path, options: FleetOptions & { graceSeconds?: number }) => {
      const json = { grace_seconds: options.graceSeconds };
      const device = await connect(options).request<DeviceSecret>('POST', `${path}/rotate-secret`, { json });
      print(options, device, fields(device));
    },
  ).option('--grace-seconds <n>', 'how long the old secret goes on working', integerOption(0, 31_536_000));
}
