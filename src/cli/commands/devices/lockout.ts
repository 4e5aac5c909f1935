import { type Command, Option } from 'commander';
import { pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { clientCommand, type ListOptions, withListOptions } from '../../options.ts';
import { listText, print } from '../../output.ts';

const path = pathTo('/lockouts', {});

interface FilterOptions extends ConnectionOptions {
  fleet?: string;
  device?: string;
  address?: string;
}

function withFilter(command: Command): Command {
  return command
    .option('--fleet <id>', 'only of this fleet')
    .option('--device <id>', 'only from this device')
    .option('--address <ip>', 'only of this address');
}

function filterOf({ fleet: fleet_id, device: device_id, address }: FilterOptions) {
  return { fleet_id, device_id, address };
}

/** `lockout list|lift`. */
export function addLockoutCommands(program: Command): void {
  const group = program
    .command('lockout')
    .description('see and lift lockouts: addresses refused after too many wrong credentials');

  withListOptions(withFilter(clientCommand(group, 'list', 'list the lockouts of this node'))).action(
    async (options: FilterOptions & ListOptions) => {
      const list = await connect(options).list(path, options, filterOf(options));
      const columns = ['fleet_id', 'device_id', 'address', 'until'] as const;
      print(options, list, listText(list, columns, 'Nobody is locked out.'));
    },
  );

  withFilter(clientCommand(group, 'lift', 'lift lockouts of this node, at once'))
    .addOption(new Option('--all', 'every lockout').conflicts(['fleet', 'device', 'address']))
    .action(async (options: FilterOptions & { all?: boolean }) => {
      const query = { ...filterOf(options), all: options.all ? ('true' as const) : undefined };
      if (Object.values(query).every((value) => value === undefined))
        throw new OperatorError('Give --fleet, --device or --address, or --all.');
      const lifted = await connect(options).request('DELETE', path, { query });
      print(options, lifted, `Lockouts lifted: ${lifted.lifted}.`);
    });
}
