import type { Command } from 'commander';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { connect } from '../../connection.ts';
import { type FleetOptions, fleetCommand, integerOption } from '../../options.ts';
import { fields, listText, print, printRaw } from '../../output.ts';
import { actionPath, triggerText } from './action-path.ts';
import { addActionPut, addActionTest } from './action-put.ts';
import { addActionRunCommands } from './action-runs.ts';
import { addActionStateCommands } from './action-state.ts';
import { reasonInLine, reasonText } from './run-error.ts';

interface ShowOptions extends FleetOptions {
  source?: boolean;
  version?: number;
}

async function show(name: string, options: ShowOptions): Promise<void> {
  const client = connect(options);
  let number = options.version;
  if (number === undefined) {
    const action = await client.request('GET', actionPath(options, name));
    if (!options.source) {
      const versions = action.versions.map(({ version }) => version);
      const lastError = reasonText(action.last_error);
      const on = action.on.map(triggerText);
      print(options, action, fields({ ...action, versions, on, last_error: lastError }));
      return;
    }
    number = action.version;
  }
  const path = below(actionPath(options, name), '/versions/{version}', { version: number });
  const version = await client.request('GET', path);
  const { source, ...rest } = version;
  if (options.source && !options.json) printRaw(options, source.replace(/\n$/, ''));
  else print(options, version, fields({ ...rest, on: rest.on.map(triggerText) }));
}

const columns = [
  'name',
  'enabled',
  'version',
  'on',
  'held',
  'in_hand',
  'behind',
  'dead_letters',
  'devices_behind',
  'devices_blocked',
  'runs_last_minute',
  'failures',
  'last_error',
] as const;

async function list(options: FleetOptions): Promise<void> {
  const path = pathTo('/fleets/{fleet_id}/actions', { fleet_id: options.fleet });
  const actions = await connect(options).request('GET', path);
  const items = actions.items.map((action) => ({
    ...action,
    on: action.on.map(triggerText),
    last_error: reasonInLine(action.last_error),
  }));
  print(options, actions, listText({ ...actions, items }, columns, 'This fleet has no actions.'));
}

/** `action put|list|show|delete|enable|disable|rollback|test|state|runs|logs|dead-letters|replay|drop`. */
export function addActionCommands(program: Command): void {
  const group = program
    .command('action')
    .description('manage code that runs when a device sends a message or a datapoint');

  addActionPut(group);

  fleetCommand(group, 'list', 'list the actions of a fleet and their status').action(list);

  fleetCommand(group, 'show <name>', 'show an action and its status, or one of its versions')
    .option('--source', 'print the source')
    .option('--version <n>', 'show this version instead of the current one', integerOption(1, 4_294_967_295))
    .action(show);

  fleetCommand(group, 'delete <name>', 'delete an action with its versions, state, runs and log').action(
    async (name: string, options: FleetOptions) => {
      await connect(options).request('DELETE', actionPath(options, name));
      print(options, { ok: true }, 'Action deleted.');
    },
  );

  for (const enabled of [true, false]) {
    const description = enabled
      ? 'enable an action, starting at the next record'
      : 'disable an action; it skips records stored meanwhile';
    fleetCommand(group, `${enabled ? 'enable' : 'disable'} <name>`, description).action(
      async (name: string, options: FleetOptions) => {
        const path = actionPath(options, name);
        const action = await connect(options).request('PATCH', path, { json: { enabled } });
        print(options, action, `${action.name} is ${action.enabled ? 'enabled' : 'disabled'}.`);
      },
    );
  }

  fleetCommand(group, 'rollback <name>', 'roll back to a retained version, with its schemas and filter')
    .argument('<version>', 'its number', integerOption(1, 4_294_967_295))
    .action(async (name: string, version: number, options: FleetOptions) => {
      const path = below(actionPath(options, name), '/rollback', {});
      const action = await connect(options).request('POST', path, { json: { version } });
      print(options, action, `Rolled ${action.name} back to version ${action.version}.`);
    });

  addActionTest(group);
  addActionStateCommands(group);
  addActionRunCommands(group);
}
