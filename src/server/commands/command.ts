import type { Command } from 'commander';
import { addHelpCommand } from '../../cli/commands/client/help.ts';
import { createProgram, runProgram } from '../../cli/program.ts';
import { withoutPasswords } from '../../storage/config.ts';
import { configDescription, configKeys, environmentName } from '../configuration/config.ts';
import { addCertificateCommands } from './certificate-command.ts';
import { addCopyCommand } from './copy-command.ts';
import { addMigrateCommand } from './migrate-command.ts';
import { addRebalanceCommand } from './rebalance-command.ts';
import { addServeCommand, effectiveConfig, withConfigFlags } from './serve-command.ts';
import { addRestoreCommand, addVerifyCommand } from './verify-command.ts';

/** Adds `fleetpost config`: every key with its value, source and description. */
export function addConfigCommand(program: Command): void {
  withConfigFlags(program.command('config').description('print the effective configuration'))
    .option('--json', 'print one JSON document')
    .action((flags) => {
      const { values, sources } = effectiveConfig(flags);
      const items = configKeys.map((key) => ({
        key,
        value: key === 'store' ? withoutPasswords(values.store) : values[key],
        source: sources[key],
        environment: environmentName(key),
        description: configDescription(key),
      }));
      if (flags.json) return console.log(JSON.stringify({ items, next: null }));
      for (const { key, value, source, description } of items) {
        console.log(`${key} = ${JSON.stringify(value)}  (${source})\n    ${description}`);
      }
    });
}

/** Creates `fleetpost` with all its commands. */
export function createWholeProgram(): Command {
  const program = createProgram();
  addServeCommand(program);
  addConfigCommand(program);
  addCertificateCommands(program);
  addMigrateCommand(program);
  addCopyCommand(program);
  addRebalanceCommand(program);
  addRestoreCommand(program);
  addVerifyCommand(program);
  // The last: it offers the names of all others.
  addHelpCommand(program);
  return program;
}

/** Runs any command in this process. */
export async function runCommand(argv: readonly string[]): Promise<void> {
  await runProgram(createWholeProgram(), argv);
}
