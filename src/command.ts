import type { Command } from 'commander';
import { createProgram, run } from './client/program.ts';
import { addConfigCommand } from './cluster/config-command.ts';
import { addCopyCommand } from './cluster/copy-command.ts';
import { addMigrateCommand } from './cluster/migrate-command.ts';
import { addRebalanceCommand } from './cluster/rebalance-command.ts';
import { addRestoreCommand } from './cluster/restore-command.ts';
import { addServeCommand } from './cluster/serve-command.ts';
import { addVerifyCommand } from './cluster/verify-command.ts';

/** `fleetpost` with every command that there is. */
export function createWholeProgram(): Command {
  const program = createProgram();
  addServeCommand(program);
  addConfigCommand(program);
  addMigrateCommand(program);
  addCopyCommand(program);
  addRebalanceCommand(program);
  addRestoreCommand(program);
  addVerifyCommand(program);
  return program;
}

/** Runs any command in this process. */
export async function runCommand(argv: readonly string[]): Promise<void> {
  await run(createWholeProgram(), argv);
}
