import { readFileSync } from 'node:fs';
import { type Command, CommanderError } from 'commander';
import { OperatorError } from '../core/errors.ts';
import { addActionCommands } from './commands/actions/action.ts';
import { addDeviceCommands } from './commands/devices/device.ts';
import { addClaimTokenCommands } from './commands/fleets/claim-token.ts';
import { addFleetCommands } from './commands/fleets/fleet.ts';
import { addSchemaCommands } from './commands/fleets/schema.ts';
import { addTokenCommands } from './commands/fleets/token.ts';
import { addForwarderCommands } from './commands/forwarders/forwarder.ts';
import { addBroadcastCommands } from './commands/mail/broadcast.ts';
import { addDeadLetterCommands } from './commands/mail/dead-letter.ts';
import { addMailCommands } from './commands/mail/mail.ts';
import { addConsumerCommands } from './commands/records/consumer.ts';
import { addExportCommand, addTailCommand } from './commands/records/export.ts';
import { addAuditCommands } from './commands/server/audit.ts';
import { addBackupCommand } from './commands/server/backup.ts';
import { addDashboardCommand } from './commands/server/grafana-dashboard.ts';
import { addTopCommand } from './commands/server/top.ts';
import { OnceCommand } from './options.ts';
import { printableLines } from './output.ts';

function version(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

/** Creates `fleetpost` with every command that talks to a running server; `main` adds the others. */
export function createProgram(): Command {
  const program = new OnceCommand('fleetpost')
    .description('A self-hosted HTTPS endpoint for devices.')
    .version(version())
    // Otherwise a command could not have its own --version.
    .enablePositionalOptions()
    // Inherited, like the next call, by all commands added later: `runProgram` sets the exit code.
    .exitOverride()
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

/** Runs the command in `argv`. An error is one sentence on stderr and exit status 1. */
export async function runProgram(program: Command, argv: readonly string[]): Promise<void> {
  try {
    await program.parseAsync(argv);
  } catch (error) {
    process.exitCode = error instanceof CommanderError ? error.exitCode : 1;
    // Commander has already printed the error or the help.
    if (error instanceof CommanderError) return;
    const reason = error instanceof OperatorError ? error.message : `unexpected: ${(error as Error).message}`;
    // A server's message may contain a device's text.
    process.stderr.write(`fleetpost: ${printableLines(reason)}\n`);
  }
}
