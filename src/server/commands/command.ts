import type { Command } from 'commander';
import { createProgram, runProgram } from '../../cli/program.ts';
import { addConfigCommand } from './config-command.ts';
import { addCopyCommand } from './copy-command.ts';
import { addMigrateCommand } from './migrate-command.ts';
import { addRebalanceCommand } from './rebalance-command.ts';
import { addRestoreCommand } from './restore-command.ts';
import { addServeCommand } from './serve-command.ts';
import { addVerifyCommand } from './verify-command.ts';

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
  await runProgram(createWholeProgram(), argv);
}
