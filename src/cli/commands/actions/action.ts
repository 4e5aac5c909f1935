import type { Command } from 'commander';
import type { ActionDocument } from '../../../contract/action.ts';
import { actionColumns, runErrorText, triggerText } from '../../../contract/columns/action.ts';
import { below } from '../../../contract/routes/path.ts';
import { connect } from '../../connection.ts';
import { type FleetOptions, fleetCommand, integerOption } from '../../options.ts';
import { fields, print, printRaw } from '../../output.ts';
import { listCommand, requestCommand } from '../declared.ts';
import { actionPath } from './action-path.ts';
import { addActionPut, addActionTest } from './action-put.ts';
import { addActionRunCommands } from './action-runs.ts';
import { addActionStateCommands } from './action-state.ts';

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
      const lastError = runErrorText(action.last_error);
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

/** `action put|list|show|delete|enable|disable|rollback|test|state|runs|logs|dead-letters|replay|drop`. */
export function addActionCommands(program: Command): void {
  const group = program
    .command('action')
    .description('manage code that runs when a device sends a message or a datapoint');

  addActionPut(group);

  listCommand(group, '/fleets/{fleet_id}/actions', {
    does: 'list the actions of a fleet and their status',
    columns: actionColumns,
    empty: 'This fleet has no actions.',
    isWhole: true,
  });

  fleetCommand(group, 'show <name>', 'show an action and its status, or one of its versions')
    .option('--source', 'print the source')
    .option('--version <n>', 'show this version instead of the current one', integerOption(1, 4_294_967_295))
    .action(show);

  const one = '/fleets/{fleet_id}/actions/{name}';
  requestCommand(group, 'DELETE', one, {
    usage: 'delete <name>',
    does: 'delete an action with its versions, state, runs and log',
    done: 'Action deleted.',
  });
  const done = ({ name, enabled }: ActionDocument): string =>
    `${name} is ${enabled ? 'enabled' : 'disabled'}.`;
  for (const [usage, does, enabled] of [
    ['enable <name>', 'enable an action, starting at the next record', true],
    ['disable <name>', 'disable an action; it skips records stored meanwhile', false],
  ] as const)
    requestCommand(group, 'PATCH', one, { usage, does, json: { enabled }, done });

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
