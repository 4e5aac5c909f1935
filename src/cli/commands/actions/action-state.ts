import type { Command } from 'commander';
import type { StateEntryDocument } from '../../../contract/action-run.ts';
import { stateColumns } from '../../../contract/columns/action.ts';
import { below } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import { connect } from '../../connection.ts';
import { type FleetOptions, fleetCommand } from '../../options.ts';
import { print, printable } from '../../output.ts';
import { listCommand } from '../declared.ts';
import { actionPath } from './action-path.ts';

function statePath(options: FleetOptions, name: string) {
  return below(actionPath(options, name), '/state', {});
}

function valuePath(options: FleetOptions, name: string) {
  return below(statePath(options, name), '/value', {});
}

/** As JSON: a text has its quotes, so that it is told from a number. */
function valueText({ value }: StateEntryDocument): string {
  return printable(JSON.stringify(value));
}

/** @throws OperatorError */
function parsedValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new OperatorError(`The value is not JSON. A text has quotes of its own: '"open"'.`);
  }
}

async function showKey(name: string, key: string, options: FleetOptions): Promise<void> {
  const entry = await connect(options).request('GET', valuePath(options, name), { query: { key } });
  print(options, entry, valueText(entry));
}

async function setKey(name: string, key: string, text: string, options: FleetOptions): Promise<void> {
  const json = { value: parsedValue(text) };
  const path = valuePath(options, name);
  const entry = await connect(options).request('PUT', path, { query: { key }, json });
  print(options, entry, printable(`${entry.key} is set to ${valueText(entry)}.`));
}

/** Deletes one key or, only with `--all`, all: a missing key must not mean all. */
async function deleteState(
  name: string,
  key: string | undefined,
  options: FleetOptions & { all?: boolean },
): Promise<void> {
  if ((key === undefined) === (options.all === undefined)) {
    throw new OperatorError('Name one key, or all of them by --all.');
  }
  const client = connect(options);
  const answer =
    key === undefined
      ? await client.request('DELETE', statePath(options, name))
      : await client.request('DELETE', valuePath(options, name), { query: { key } });
  print(options, answer, `Deleted ${answer.deleted} ${answer.deleted === 1 ? 'key' : 'keys'}.`);
}

/** `action state list|get|set|delete`. */
export function addActionStateCommands(group: Command): void {
  const states = group.command('state').description('see and change what an action keeps between runs');
  listCommand(states, '/fleets/{fleet_id}/actions/{name}/state', {
    usage: 'list <name>',
    does: 'list the state of an action by its keys',
    columns: stateColumns,
    empty: 'The state is empty.',
  });
  fleetCommand(states, 'get <name> <key>', 'print the value of a key as JSON').action(showKey);
  fleetCommand(
    states,
    'set <name> <key> <json>',
    'set a key; runs under way that have read it start over',
  ).action(setKey);
  fleetCommand(states, 'delete <name> [key]', 'delete a key, or all of them')
    .option('--all', 'the whole state')
    .action(deleteState);
}
