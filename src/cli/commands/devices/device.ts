import { type Command, Option } from 'commander';
import { deviceColumns } from '../../../contract/columns/device.ts';
import { below, type Path, pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import { connect } from '../../connection.ts';
import { secondsOption } from '../../moment.ts';
import { deviceIdOption, type FleetOptions, fleetCommand, several } from '../../options.ts';
import { fields, print } from '../../output.ts';
import { listCommand } from '../declared.ts';
import { fieldsOf, latestLines } from '../records/record-lines.ts';
import { addDeviceChange } from './device-change.ts';
import { addDeviceDelete } from './device-delete.ts';
import { addDeviceExport } from './device-export.ts';
import { filterQuery, withDeviceFilter } from './device-filter.ts';
import { addDeviceImport } from './device-import.ts';

type DevicePath = Path<'/fleets/{fleet_id}/devices/{device_id}'>;

/** Adds a command on one device, given as argument or, for scripts that name everything, as `--device`. */
function deviceCommand<O extends FleetOptions>(
  group: Command,
  name: string,
  description: string,
  act: (path: DevicePath, options: O) => Promise<void>,
): Command {
  return fleetCommand(group, `${name} [device_id]`, description)
    .option('--device <id>', 'the device, instead of the argument')
    .action(async (argument: string | undefined, options: O & { device?: string }) => {
      const id = argument ?? options.device;
      if (id === undefined) throw new OperatorError('Give the device: its id, or --device ID.');
      const ids = { fleet_id: options.fleet, device_id: id };
      await act(pathTo('/fleets/{fleet_id}/devices/{device_id}', ids), options);
    });
}

interface DeviceSettings {
  name?: string;
  tag?: string[];
  clearTags?: boolean;
}

/** `device set`. */
function addDeviceSet(group: Command): void {
  deviceCommand(
    group,
    'set',
    'change the name or the tags of a device; absent options stay as they are',
    async (path, options: FleetOptions & DeviceSettings) => {
      const json = { name: options.name, tags: options.clearTags ? [] : options.tag };
      if (json.name === undefined && json.tags === undefined) {
        throw new OperatorError('Nothing to change: give --name, --tag or --clear-tags.');
      }
      const device = await connect(options).request('PATCH', path, { json });
      print(options, device, fields(device));
    },
  )
    .option('--name <text>', 'a name for people')
    .option('--tag <tag>', 'tag of the device, instead of all it has; repeatable', several)
    .addOption(new Option('--clear-tags', 'remove all its tags').conflicts('tag'));
}

const latestMax = 20;

/** Prints the payloads of its latest datapoints as they were sent, also with `--json` (D11). */
async function showDevice(path: DevicePath, options: FleetOptions): Promise<void> {
  const client = connect(options);
  const device = await client.request('GET', path);
  const { fleet_id, device_id } = device;
  const query = { device: device_id, kind: 'datapoint', per_schema: true, limit: latestMax };
  const records = pathTo('/fleets/{fleet_id}/records:latest', { fleet_id });
  const diagnosis = await client.request(
    'GET',
    pathTo('/fleets/{fleet_id}/devices/{device_id}/diagnosis', { fleet_id, device_id }),
  );
  const { lines, isPartial } = latestLines(await client.requestText('GET', records, { query }));
  if (options.json) {
    const shown = JSON.stringify({ ...device, diagnosis });
    process.stdout.write(`${shown.slice(0, -1)},"latest":[${lines.join(',')}]}\n`);
    return;
  }
  const latest = lines.map(fieldsOf).map((one) => `${one.stored_at}  ${one.schema}  ${one.payload}`);
  if (isPartial) latest.push('(older ones are further back in the log than is read here)');
  const lockouts = device.lockouts.map(({ address, until }) => `${address} until ${until}`);
  const shown = {
    ...device,
    diagnosis: diagnosis.findings.map(({ sentence }) => sentence).join('\n'),
    lockouts: lockouts.join('\n') || null,
    latest: latest.join('\n') || null,
  };
  process.stdout.write(`${fields(shown)}\n`);
}

/** `device create|import|export|change|list|show|set|enable|disable|delete|rotate-secret`. */
export function addDeviceCommands(program: Command): void {
  const group = program.command('device').description('create, list and change the devices of a fleet');

  fleetCommand(group, 'create', 'create a device; its secret is shown only once')
    .option('--id <id>', '10 letters or digits; default: random', deviceIdOption)
    .option('--name <text>', 'a name for people')
    .option('--tag <tag>', 'tag of the device; repeatable', several)
    .action(async (options: FleetOptions & { id?: string; name?: string; tag?: string[] }) => {
      const json = { device_id: options.id, name: options.name, tags: options.tag };
      const path = pathTo('/fleets/{fleet_id}/devices', { fleet_id: options.fleet });
      const device = await connect(options).request('POST', path, { json });
      print(options, device, fields(device));
    });

  addDeviceImport(group);
  addDeviceExport(group);
  addDeviceChange(group);

  withDeviceFilter(
    listCommand(
      group,
      ['list', 'list the devices of a fleet, or those that match'],
      '/fleets/{fleet_id}/devices',
      {
        columns: deviceColumns,
        empty: 'This fleet has no matching devices.',
        queryOf: filterQuery,
      },
    ),
  );

  deviceCommand(
    group,
    'show',
    'show a device, why it is stuck, and its latest datapoint of each schema',
    showDevice,
  );

  addDeviceSet(group);

  for (const enabled of [true, false]) {
    const verb = enabled ? 'enable' : 'disable';
    deviceCommand(group, verb, `${verb} a device`, async (path, options) => {
      const device = await connect(options).request('PATCH', path, { json: { enabled } });
      print(options, device, `${device.device_id} is ${device.enabled ? 'enabled' : 'disabled'}.`);
    });
  }

  addDeviceDelete(group);

  deviceCommand(
    group,
    'rotate-secret',
    'rotate the secret of a device',
    async (path, options: FleetOptions & { graceSeconds?: number }) => {
      const json = { grace_seconds: options.graceSeconds };
      const device = await connect(options).request('POST', below(path, '/rotate-secret', {}), { json });
      print(options, device, fields(device));
    },
  ).option('--grace-seconds <n>', 'how long the old secret stays valid', secondsOption(0, 31_536_000));
}
