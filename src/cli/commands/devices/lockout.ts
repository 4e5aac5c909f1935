import { type Command, Option } from 'commander';
import type { LiftedDocument, LockoutDocument } from '../../../contract/device.ts';
import { OperatorError } from '../../../core/errors.ts';
import { queryOf } from '../../admin-client.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { clientCommand, type ListOptions, withListOptions } from '../../options.ts';
import { listText, print } from '../../output.ts';

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

function filterOf({ fleet, device, address }: FilterOptions): Record<string, string> {
  return {
    ...(fleet !== undefined && { fleet_id: fleet }),
    ...(device !== undefined && { device_id: device }),
    ...(address !== undefined && { address }),
  };
}

/** `lockout list|lift`. */
export function addLockoutCommands(program: Command): void {
  const group = program
    .command('lockout')
    .description('see and lift lockouts: addresses refused after too many wrong credentials');

  withListOptions(withFilter(clientCommand(group, 'list', 'list the lockouts of this node'))).action(
    async (options: FilterOptions & ListOptions) => {
      const list = await connect(options).listAs<LockoutDocument>('/lockouts', options, filterOf(options));
      const columns = ['fleet_id', 'device_id', 'address', 'until'] as const;
      print(options, list, listText(list, columns, 'Nobody is locked out.'));
    },
  );

  withFilter(clientCommand(group, 'lift', 'lift lockouts of this node, at once'))
    .addOption(new Option('--all', 'every lockout').conflicts(['fleet', 'device', 'address']))
    .action(async (options: FilterOptions & { all?: boolean }) => {
      const query = queryOf({ ...filterOf(options), ...(options.all && { all: 'true' }) });
      if (query.size === 0) throw new OperatorError('Give --fleet, --device or --address, or --all.');
      const lifted = await connect(options).requestAs<LiftedDocument>('DELETE', `/lockouts?${query}`);
      print(options, lifted, `Lockouts lifted: ${lifted.lifted}.`);
    });
}
