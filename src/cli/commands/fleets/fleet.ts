import type { Command } from 'commander';
import { fleetColumns } from '../../../contract/columns/fleet.ts';
import type { FleetDocument } from '../../../contract/fleet.ts';
import { below, type Path, pathTo } from '../../../contract/routes/path.ts';
import { fleetVariable } from '../../../core/config/client-variables.ts';
import { OperatorError } from '../../../core/errors.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { clientCommand, defaultFleet, fleetIdOption } from '../../options.ts';
import { fields, print } from '../../output.ts';
import { listCommand } from '../declared.ts';
import { deleteFleet } from './fleet-delete.ts';
import { type FleetSettings, settingsDocument, withFleetSettings } from './fleet-settings.ts';

/** True if a value says that there is no such limit; no requeue at all is a limit. */
function isNoLimit(name: string, value: unknown): boolean {
  return name.endsWith('_max') && (value === null || (value === 0 && name.includes('_per_second_')));
}

/** The limits that are its own have a line that says so; `own` alone would not. */
function fleetText({ own, ...fleet }: FleetDocument): string {
  const shown = Object.entries(fleet).map(([name, value]) => [name, isNoLimit(name, value) ? 'none' : value]);
  return fields({ ...Object.fromEntries(shown), limits_of_its_own: own.length === 0 ? 'none' : own });
}

/** Adds a command on one fleet, given as argument or, as all other commands have it, as `--fleet`. */
function oneFleetCommand<O extends ConnectionOptions>(
  group: Command,
  name: string,
  description: string,
  act: (path: Path<'/fleets/{fleet_id}'>, options: O) => Promise<void>,
): Command {
  return clientCommand(group, name, description)
    .argument('[fleet_id]', 'the fleet', fleetIdOption)
    .option('--fleet <id>', `the fleet, instead of the argument; or set ${fleetVariable}`, fleetIdOption)
    .action(async (argument: string | undefined, options: O & { fleet?: string }, command: Command) => {
      const ids = new Set([argument, options.fleet].filter((id) => id !== undefined));
      if (ids.size > 1) throw new OperatorError('Give one fleet: its id, or --fleet ID.');
      const [id = defaultFleet(command)] = ids;
      await act(pathTo('/fleets/{fleet_id}', { fleet_id: id }), options);
    });
}

/** `fleet create|set|show|delete|list|counts`. */
export function addFleetCommands(program: Command): void {
  const group = program.command('fleet').description('create, change, show, list, count and delete fleets');

  withFleetSettings(
    clientCommand(group, 'create', 'create a fleet').option(
      '--id <id>',
      '8 letters or digits; default: random',
      fleetIdOption,
    ),
  ).action(async (options: ConnectionOptions & FleetSettings & { id?: string }) => {
    const json = { fleet_id: options.id, ...settingsDocument(options) };
    const fleet = await connect(options).request('POST', pathTo('/fleets', {}), { json });
    const id = fleet.fleet_id;
    print(options, fleet, `The fleet ${id} is created; "fleet show ${id}" prints its limits.`);
  });

  withFleetSettings(
    oneFleetCommand(
      group,
      'set',
      'change a fleet; absent options stay as they are',
      async (path, options: ConnectionOptions & FleetSettings) => {
        const json = settingsDocument(options);
        if (Object.keys(json).length === 0) {
          throw new OperatorError('Nothing to change: give an option, see --help.');
        }
        const fleet = await connect(options).request('PATCH', path, { json });
        print(options, fleet, fleetText(fleet));
      },
    ),
  );

  oneFleetCommand(group, 'show', 'show a fleet with its effective limits', async (path, options) => {
    const fleet = await connect(options).request('GET', path);
    print(options, fleet, fleetText(fleet));
  });

  listCommand(group, '/fleets', {
    does: 'list all fleets',
    columns: fleetColumns,
    empty: 'There are no fleets.',
  });

  oneFleetCommand(
    group,
    'delete',
    'delete a fleet with its devices, their mail and all that is declared in it',
    deleteFleet,
  ).option(
    '--confirm <name>',
    'the name of the fleet, or its id if it has no name; needed without a terminal',
  );

  oneFleetCommand(
    group,
    'counts',
    'count the devices of a fleet: all, disabled, connected, active',
    async (path, options) => {
      const counts = await connect(options).request('GET', below(path, '/counts', {}));
      print(options, counts, fields(counts));
    },
  );
}
