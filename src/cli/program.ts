import { type Command, CommanderError, Help, type Option } from 'commander';
import { OperatorError } from '../core/errors.ts';
import { programVersion } from '../core/telemetry/version.ts';
import { RefusedError } from './admin-client.ts';
import { addActionCommands } from './commands/actions/action.ts';
import { addCompletionCommand } from './commands/client/completion.ts';
import { addConsoleCommand } from './commands/client/console.ts';
import { addContextCommands } from './commands/client/context.ts';
import { addAgentCommands } from './commands/devices/agent.ts';
import { addDeviceCommands } from './commands/devices/device.ts';
import { addLockoutCommands } from './commands/devices/lockout.ts';
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
import { addRecordCommands } from './commands/records/record.ts';
import { addAuditCommands } from './commands/server/audit.ts';
import { addBackupCommand } from './commands/server/backup.ts';
import { addDashboardCommand } from './commands/server/grafana-dashboard.ts';
import { addAlertsCommand } from './commands/server/prometheus-alerts.ts';
import { addReleaseCommand } from './commands/server/release.ts';
import { addStatusCommand } from './commands/server/status.ts';
import { addTopCommand } from './commands/server/top.ts';
import { addSimulateCommands } from './commands/simulate/simulate.ts';
import { StrictCommand } from './options.ts';
import { endWithReader, printableLines } from './output.ts';
import { refusalText } from './refusal-text.ts';

/** Describes an option for `--help`, and marks it if the command does not work without it. */
function describeOption(option: Option): string {
  const text = Help.prototype.optionDescription(option);
  return option.mandatory ? `${text} (required)` : text;
}

/** Creates `fleetpost` with every command that talks to a running server; `main` adds the others. */
export function createProgram(): Command {
  const program = new StrictCommand('fleetpost')
    .description('A self-hosted HTTPS endpoint for devices.')
    .version(programVersion())
    // Otherwise a command could not have its own --version.
    .enablePositionalOptions()
    // Inherited, like the next calls, by all commands added later: `runProgram` sets the exit code.
    .exitOverride()
    .configureHelp({ optionDescription: describeOption })
    .configureOutput({
      writeOut: (text) => {
        endWithReader();
        process.stdout.write(text);
      },
      outputError: (text, write) => write(text.replace(/^error: /, 'fleetpost: ')),
    });
  addFleetCommands(program);
  addDeviceCommands(program);
  addLockoutCommands(program);
  addAgentCommands(program);
  addSchemaCommands(program);
  addMailCommands(program);
  addDeadLetterCommands(program);
  addBroadcastCommands(program);
  addActionCommands(program);
  addForwarderCommands(program);
  addTailCommand(program);
  addRecordCommands(program);
  addExportCommand(program);
  addConsumerCommands(program);
  addTokenCommands(program);
  addClaimTokenCommands(program);
  addAuditCommands(program);
  addBackupCommand(program);
  addTopCommand(program);
  addStatusCommand(program);
  addReleaseCommand(program);
  addDashboardCommand(program);
  addAlertsCommand(program);
  addSimulateCommands(program);
  addConsoleCommand(program);
  addContextCommands(program);
  addCompletionCommand(program);
  return program;
}

/** Runs the command in `argv`. An error is one sentence on stderr and exit status 1. */
export async function runProgram(program: Command, argv: readonly string[]): Promise<void> {
  let options: readonly Option[] = [];
  program.hook('preAction', (_, command) => {
    options = command.options;
  });
  try {
    await program.parseAsync(argv);
  } catch (error) {
    process.exitCode = error instanceof CommanderError ? error.exitCode : 1;
    // Commander has already printed the error or the help.
    if (error instanceof CommanderError) return;
    const reason =
      error instanceof RefusedError
        ? refusalText(error, options)
        : error instanceof OperatorError
          ? error.message
          : `unexpected: ${(error as Error).message}`;
    // A server's message may contain a device's text.
    process.stderr.write(`fleetpost: ${printableLines(reason)}\n`);
  }
}
