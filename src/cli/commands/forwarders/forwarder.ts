import type { Command } from 'commander';
import { type List, pathOf } from '../../admin-client.ts';
import { connect } from '../../connection.ts';
import { fleetCommand } from '../../options.ts';
import { fields, listText, print } from '../../output.ts';
import { addForwarderLetterCommands } from './forwarder-letters.ts';
import { type ForwarderAnswer, type ForwarderFleetOptions, forwarderUrl } from './forwarder-path.ts';
import { addForwarderPut } from './forwarder-put.ts';

function shown({ last_error, ...forwarder }: ForwarderAnswer) {
  const { url, servers = [], filter } = forwarder;
  return {
    ...forwarder,
    to: url ?? servers.join(' '),
    filter: [...(filter.kinds ?? []), ...(filter.schemas ?? [])],
    last_error: last_error && `${last_error.at}  ${last_error.msg}`,
  };
}

/** `forwarder put|list|show|pause|resume|rotate-secret|delete|dead-letters|replay|drop`. */
export function addForwarderCommands(program: Command): void {
  const group = program
    .command('forwarder')
    .description('send the records of a fleet on, as they are stored');

  addForwarderPut(group);

  fleetCommand(group, 'list', 'list the forwarders of a fleet and how each is doing').action(
    async (options: ForwarderFleetOptions) => {
      const path = pathOf('fleets', options.fleet, 'forwarders');
      const { items, next } = await connect(options).request<List<ForwarderAnswer>>('GET', path);
      const columns = [
        'name',
        'type',
        'to',
        'state',
        'behind',
        'delivered',
        'dead_letters',
        'last_error',
      ] as const;
      const list = { items: items.map(shown), next };
      print(options, { items, next }, listText(list, columns, 'This fleet has no forwarders.'));
    },
  );

  fleetCommand(group, 'show <name>', 'show a forwarder and how it is doing').action(
    async (name: string, options: ForwarderFleetOptions) => {
      const forwarder = await connect(options).request<ForwarderAnswer>('GET', forwarderUrl(options, name));
      const { to: _, ...rest } = shown(forwarder);
      print(options, forwarder, fields(rest));
    },
  );

  for (const enabled of [false, true]) {
    const description = enabled
      ? 'have a forwarder go on where it was'
      : 'stop a forwarder; it keeps its place, and what is stored meanwhile waits for it';
    fleetCommand(group, `${enabled ? 'resume' : 'pause'} <name>`, description).action(
      async (name: string, options: ForwarderFleetOptions) => {
        const path = forwarderUrl(options, name);
        const forwarder = await connect(options).request<ForwarderAnswer>('PATCH', path, {
          json: { enabled },
        });
        print(options, forwarder, `${forwarder.name} ${forwarder.enabled ? 'goes on' : 'is paused'}.`);
      },
    );
  }

  fleetCommand(group, 'delete <name>', 'delete a forwarder with its place and its dead letters').action(
    async (name: string, options: ForwarderFleetOptions) => {
      await connect(options).request('DELETE', forwarderUrl(options, name));
      print(options, { ok: true }, 'The forwarder is deleted.');
    },
  );

  addForwarderLetterCommands(group);
}
