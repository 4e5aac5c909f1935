import { type Command, Option } from 'commander';
import { deviceColumns } from '../../../contract/columns/device.ts';
import type { DeviceChangeBody, DeviceDocument } from '../../../contract/device.ts';
import { type Path, pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import { connect } from '../../connection.ts';
import { secondsOption } from '../../moment.ts';
import { deviceIdOption, type FleetOptions, fleetCommand, option, several } from '../../options.ts';
import { fields, print } from '../../output.ts';
import { listCommand, type OptionsOf, requestCommand, valuesOf, withOptions } from '../declared.ts';
import { fieldsOf, latestLines } from '../records/record-lines.ts';
import { addDeviceChange } from './device-change.ts';
import { addDeviceDelete } from './device-delete.ts';
import { addDeviceExport } from './device-export.ts';
import { deviceOptions, filterQuery } from './device-filter.ts';
import { addDeviceImport } from './device-import.ts';

const oneDevice = '/fleets/{fleet_id}/devices/{device_id}';
type DevicePath = Path<typeof oneDevice>;

function withDevice(command: Command): Command {
  return command.option('--device <id>', 'the device, instead of the argument');
}

/** Adds a command on one device, given as argument or, for scripts that name everything, as `--device`. */
function deviceCommand<O extends FleetOptions>(
  group: Command,
  name: string,
  description: string,
  act: (path: DevicePath, options: O) => Promise<void>,
): Command {
  return withDevice(fleetCommand(group, `${name} [device_id]`, description)).action(
    async (argument: string | undefined, options: O & { device?: string }) => {
      const id = argument ?? options.device;
      if (id === undefined) throw new OperatorError('Give the device: its id, or --device ID.');
      await act(pathTo(oneDevice, { fleet_id: options.fleet, device_id: id }), options);
    },
  );
}

/** Texts about a device, for its creation and later. */
const texts: OptionsOf<DeviceChangeBody> = {
  name: option('--name <text>', 'a name for people'),
};

/** `device set`. */
function addDeviceSet(group: Command): void {
  const command = deviceCommand(
    group,
    'set',
    'change the name or the tags of a device; absent options stay as they are',
    async (path, options: FleetOptions & { tag?: string[]; clearTags?: boolean }) => {
      const tags = options.clearTags ? [] : options.tag;
      const json = { ...valuesOf(texts, options), ...(tags && { tags }) };
      if (Object.keys(json).length === 0) {
        const flags = Object.values(texts).map(({ long }) => long);
        throw new OperatorError(`Nothing to change: give ${flags.join(', ')}, --tag or --clear-tags.`);
      }
      const device = await connect(options).request('PATCH', path, { json });
      print(options, device, fields(device));
    },
  );
  withOptions(command, texts)
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

  requestCommand(group, 'POST', '/fleets/{fleet_id}/devices', {
    usage: 'create',
    does: 'create a device; its secret is shown only once',
    body: {
      device_id: option('--id <id>', '10 letters or digits; default: random', deviceIdOption),
      ...texts,
      tags: option('--tag <tag>', 'tag of the device; repeatable', several),
    },
  });

  addDeviceImport(group);
  addDeviceExport(group);
  addDeviceChange(group);

  listCommand(group, '/fleets/{fleet_id}/devices', {
    does: 'list the devices of a fleet, or those that match',
    columns: deviceColumns,
    empty: 'This fleet has no matching devices.',
    filter: deviceOptions,
    queryOf: filterQuery,
  });

  deviceCommand(
    group,
    'show',
    'show a device, why it is stuck, and its latest datapoint of each schema',
    showDevice,
  );

  addDeviceSet(group);

  const done = ({ device_id, enabled }: DeviceDocument): string =>
    `${device_id} is ${enabled ? 'enabled' : 'disabled'}.`;
  for (const [verb, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const)
    withDevice(
      requestCommand(group, 'PATCH', oneDevice, {
        usage: `${verb} [device_id]`,
        does: `${verb} a device`,
        json: { enabled },
        done,
      }),
    );

  addDeviceDelete(group);

  const grace = option(
    '--grace-seconds <n>',
    'how long the old secret stays valid',
    secondsOption(0, 31_536_000),
  );
  withDevice(
    requestCommand(group, 'POST', `${oneDevice}/rotate-secret`, {
      usage: 'rotate-secret [device_id]',
      does: 'rotate the secret of a device',
      body: { grace_seconds: grace },
    }),
  );
}
