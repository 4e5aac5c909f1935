import { type AgentError, usageError } from './agent-error.ts';
import { daemonStatus, type StartReport, startDaemon, stopDaemon } from './daemon.ts';
import { installShim } from './install.ts';
import { runUntilStopped } from './run.ts';
import { readCommand, readSettings, socketPathIn } from './settings.ts';

/** The SDKs' installer downloads an agent of its own unless it is told exactly this. */
const version = 'v0.1.0';
const usage =
  'agent start|run|stop|status|version|install DIR [--url URL] [--ca FILE] [--pins PINS] [--queue FILE] [--socket PATH]';

/** Runs a command of the agent, and returns its exit status. file: what Node runs as the agent. */
export async function runAgentCommand(args: readonly string[], file: string): Promise<number> {
  try {
    const { words, environment } = readCommand(args, process.env);
    const text = await runWords(words, environment, file);
    if (text !== undefined) process.stdout.write(`${text}\n`);
    return 0;
  } catch (error) {
    const { atom = 'failed', message } = error as AgentError;
    if (process.send === undefined) process.stdout.write(`${atom}: ${message}\n`);
    else await report({ isStarted: false, atom, text: message });
    return 1;
  }
}

async function runWords(
  [name, folder]: readonly string[],
  environment: NodeJS.ProcessEnv,
  file: string,
): Promise<string | undefined> {
  if (name === 'version') return version;
  if (name === 'start') return startDaemon(readSettings(environment), file, environment);
  if (name === 'stop') return stopDaemon(socketPathIn(environment));
  if (name === 'status') return daemonStatus(socketPathIn(environment));
  if (name === 'install') return installShim(folder, file, environment);
  if (name !== 'run') throw usageError('invalid_command', usage);
  process.umask(0o077);
  const isDaemon = process.send !== undefined;
  const say = isDaemon ? (): void => {} : (text: string): void => void process.stderr.write(`${text}\n`);
  await runUntilStopped(readSettings(environment), () => void report({ isStarted: true }), say);
  return undefined;
}

/** Tells the command that has started this process as a daemon. */
function report(message: StartReport): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    else process.send(message, () => resolve());
  });
}
