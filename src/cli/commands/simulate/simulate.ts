import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { OperatorError } from '../../../core/errors.ts';
import type { ScenarioDocument } from '../../../device/simulator/scenario/profile.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { clientCommand, integerOption, StrictCommand, several } from '../../options.ts';
import { print } from '../../output.ts';
import type { RunOptions } from './simulate-run.ts';

interface FleetRunOptions extends RunOptions {
  devices: number;
  profile: string;
  for: string;
  seed: number;
  speed?: string;
}

const devicesMax = 10_000_000;
const seedMax = 4_294_967_295;

function withRunOptions(command: Command): Command {
  return command
    .option('--url <url>', 'URL of the device API; default: https://127.0.0.1:8443')
    .option('--ca <file>', "certificates to trust for the device API, PEM; default: the data folder's")
    .option('--assert <conditions>', 'conditions for exit status 0, like "datapoint.p99<50ms, errors=0"')
    .option('--processes <n>', 'processes of devices; default: one a core', integerOption(1, 1_024))
    .option('--connections <n>', 'connections that devices share; default: 1000', integerOption(1, 1_000_000))
    .option('--own-server', 'start a server for the run on a temporary folder')
    .option(
      '--chaos',
      'the same, and kill it again and again, beside storms, broadcasts, rotations and a flood',
    )
    .option('--nodes <n>', 'with --database: servers to start', integerOption(1, 16), 1)
    .addOption(
      new Option('--database <url>', 'PostgreSQL for the servers of the run; it must be empty').argParser(
        several,
      ),
    )
    .option('--shards <n>', 'workers of each server of the run', integerOption(1, 256));
}

/** `simulate` with what it runs. */
export function addSimulateCommands(program: Command): void {
  const group = program
    .command('simulate')
    .description('simulate a fleet of devices, and check what they were answered')
    .addHelpText(
      'after',
      '\n"simulate --devices 500" is "simulate fleet --devices 500": see "simulate fleet --help".',
    );
  const fleet = clientCommand(
    new StrictCommand(),
    'fleet',
    'simulate devices of some profiles; the word "fleet" may be left out',
  );
  group.addCommand(fleet.copyInheritedSettings(group), { isDefault: true });
  withRunOptions(fleet)
    .option('--devices <n>', 'devices', integerOption(1, devicesMax), 100)
    .option(
      '--profile <mix>',
      'profiles with their shares: thermostat, lock, tracker, gateway, sleeper, faulty',
      'thermostat=40%,lock=25%,tracker=15%,gateway=5%,sleeper=10%,faulty=5%',
    )
    .option('--for <time>', 'length of the run, like 90s or 10m', '1m')
    .option('--seed <n>', 'seed of all chance', integerOption(0, seedMax), 1)
    .option('--speed <factor>', 'factor of all rates')
    .action(async (options: FleetRunOptions) => {
      const { readMix } = await import('../../../device/simulator/scenario/scenario.ts');
      const speed = options.speed === undefined ? undefined : Number(options.speed);
      if (speed !== undefined && !(speed > 0)) throw new OperatorError('--speed must be a number above 0.');
      await run(
        {
          devices: options.devices,
          for: options.for,
          seed: options.seed,
          mix: readMix(options.profile),
          ...(speed !== undefined && { speed }),
        },
        options,
      );
    });
  withRunOptions(clientCommand(group, 'run <file>', 'run a scenario, JSON')).action(
    async (file: string, options: RunOptions) => {
      const { readScenario } = await import('../../../device/simulator/scenario/scenario.ts');
      await run(readScenario(readText(file)), options);
    },
  );
  clientCommand(group, 'clean', 'remove the fleets that simulations have left').action(clean);
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new OperatorError(`The scenario cannot be read: ${(error as Error).message}.`);
  }
}

async function run(document: ScenarioDocument, options: RunOptions): Promise<void> {
  // Loaded here, so that other commands do not.
  const { runScenario } = await import('./simulate-run.ts');
  await runScenario(document, options);
}

async function clean(options: ConnectionOptions): Promise<void> {
  const { removeSimulatedFleet, simulatedFleets } = await import(
    '../../../device/simulator/run/provision.ts'
  );
  const admin = connect(options);
  const fleets = await simulatedFleets(admin);
  for (const fleet of fleets) await removeSimulatedFleet(admin, fleet);
  const removed = fleets.map(({ fleet_id }) => fleet_id);
  print(
    options,
    { removed },
    removed.length === 0 ? 'There is nothing to remove.' : `Fleets being removed: ${removed.join(', ')}.`,
  );
}
