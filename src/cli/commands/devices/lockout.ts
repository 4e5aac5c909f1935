import { type Command, Option } from 'commander';
import type { LockoutSelection } from '../../../contract/access/lockout.ts';
import { lockoutColumns } from '../../../contract/columns/access.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { clientCommand } from '../../options.ts';
import { print } from '../../output.ts';
import { listCommand, type OptionsOf, valuesOf, withOptions } from '../declared.ts';

const filter = {
  fleet_id: new Option('--fleet <id>', 'only of this fleet'),
  device_id: new Option('--device <id>', 'only from this device'),
  address: new Option('--address <ip>', 'only of this address'),
} satisfies OptionsOf<LockoutSelection>;

/** `lockout list|lift`. */
export function addLockoutCommands(program: Command): void {
  const group = program
    .command('lockout')
    .description('see and lift lockouts: addresses refused after too many wrong credentials');

  listCommand(group, '/lockouts', {
    does: 'list the lockouts of this node',
    columns: lockoutColumns,
    empty: 'Nobody is locked out.',
    filter,
  });

  withOptions(clientCommand(group, 'lift', 'lift lockouts of this node, at once'), filter)
    .addOption(new Option('--all', 'every lockout').conflicts(['fleet', 'device', 'address']))
    .action(async (options: ConnectionOptions & { all?: boolean }) => {
      const query: LockoutSelection = {
        ...valuesOf<LockoutSelection>(filter, options),
        ...(options.all && { all: 'true' }),
      };
      if (Object.keys(query).length === 0)
        throw new OperatorError('Give --fleet, --device or --address, or --all.');
      const lifted = await connect(options).request('DELETE', pathTo('/lockouts', {}), { query });
      print(options, lifted, `Lockouts lifted: ${lifted.lifted}.`);
    });
}
