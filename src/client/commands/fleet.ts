import type { Command } from 'commander';
import { pathOf } from '../admin-client.ts';
import { type ConnectionOptions, connect } from '../connection.ts';
import { clientCommand, fleetCommand, type ListOptions, withListOptions } from '../options.ts';
import { fields, listText, print } from '../output.ts';

interface Fleet {
  fleet_id: string;
  name: string;
  created_at: string;
  mailbox_mails_max: number;
  mail_life_seconds: number;
}

interface FleetCounts {
  devices: number;
  disabled: number;
  connected: number;
  active: number;
  counted_at: string;
}

/** `fleet create|list|counts`. */
export function addFleetCommands(program: Command): void {
  const group = program.command('fleet').description('make, list and count fleets');

  clientCommand(group, 'create', 'make a fleet')
    .option('--id <id>', '8 letters or digits; without it, random ones')
    .option('--name <text>', 'a name for people')
    .action(async (options: ConnectionOptions & { id?: string; name?: string }) => {
      const json = { fleet_id: options.id, name: options.name };
      const fleet = await connect(options).request<Fleet>('POST', '/fleets', { json });
      print(options, fleet, fields(fleet));
    });

  withListOptions(clientCommand(group, 'list', 'list all fleets')).action(
    async (options: ConnectionOptions & ListOptions) => {
      const fleets = await connect(options).list<Fleet>('/fleets', options);
      print(options, fleets, listText(fleets, ['fleet_id', 'name', 'created_at'], 'There are no fleets.'));
    },
  );

  fleetCommand(group, 'counts', 'count the devices of a fleet: all, disabled, connected, active').action(
    async (options: ConnectionOptions & { fleet: string }) => {
      const path = `${pathOf('fleets', options.fleet)}/counts`;
      const counts = await connect(options).request<FleetCounts>('GET', path);
      print(options, counts, fields(counts));
    },
  );
}
