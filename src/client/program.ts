import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { OperatorError } from '../core/errors.ts';
import { addActionCommands } from './commands/action.ts';
import { addAuditCommands } from './commands/audit.ts';
import { addBackupCommand } from './commands/backup.ts';
import { addBroadcastCommands } from './commands/broadcast.ts';
import { addClaimTokenCommands } from './commands/claim-token.ts';
import { addConsumerCommands } from './commands/consumer.ts';
import { addDashboardCommand } from './commands/dashboard.ts';
import { addDeadLetterCommands } from './commands/dead-letter.ts';
import { addDeviceCommands } from './commands/device.ts';
import { addExportCommand } from './commands/export.ts';
import { addFleetCommands } from './commands/fleet.ts';
import { addForwarderCommands } from './commands/forwarder.ts';
import { addMailCommands } from './commands/mail.ts';
import { addSchemaCommands } from './commands/schema.ts';
import { addTailCommand } from './commands/tail.ts';
import { addTokenCommands } from './commands/token.ts';
import { addTopCommand } from './commands/top.ts';
import { OnceCommand } from './once-command.ts';
import { printableLines } from './output.ts';

function version(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

/** `fleetpost` with every command that talks to a running server; whoever serves adds the rest. */
export function createProgram(): Command {
  const program = new OnceCommand('fleetpost')
    .description('A self-hosted HTTPS endpoint for devices.')
    .version(version())
    // Else a command could have no --version of its own.
    .enablePositionalOptions()
    // Inherited by the commands that are added from here on.
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'fleetpost: ')) });
  addFleetCommands(program);
  addDeviceCommands(program);
  addSchemaCommands(program);
  addMailCommands(program);
  addDeadLetterCommands(program);
  addBroadcastCommands(program);
  addActionCommands(program);
  addForwarderCommands(program);
  addTailCommand(program);
  addExportCommand(program);
  addConsumerCommands(program);
  addTokenCommands(program);
  addClaimTokenCommands(program);
  addAuditCommands(program);
  addBackupCommand(program);
  addTopCommand(program);
  addDashboardCommand(program);
  return program;
}

/** Runs the command that `argv` names. What goes wrong is one sentence on stderr and exit status 1. */
export async function run(program: Command, argv: readonly string[]): Promise<void> {
  try {
    await program.parseAsync(argv);
  } catch (error) {
    process.exitCode = 1;
    const reason = error instanceof OperatorError ? error.message : `unexpected: ${(error as Error).message}`;
    // A server's words may have a device's in them.
    process.stderr.write(`fleetpost: ${printableLines(reason)}\n`);
  }
}
