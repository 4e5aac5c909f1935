import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';

/** The file that goes to devices and is started as a daemon: it needs no more than Node. */
const agentFile = fileURLToPath(new URL('../../../agent.mjs', import.meta.url));

interface Flags {
  url?: string;
  ca?: string;
  pins?: string;
  queue?: string;
  socket?: string;
}

async function runAgent(words: readonly string[], flags: Flags): Promise<void> {
  // Loaded here: no other command has a use for it.
  const { runAgentCommand } = await import('../../../device/agent/command.ts');
  const options = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
  process.exitCode = await runAgentCommand([...words, ...options], agentFile);
}

function withSocket(command: Command): Command {
  return command.option('--socket <file>', 'socket (FLEETPOST_SOCKET; default: /tmp/fostrom/agent.sock)');
}

function withServer(command: Command): Command {
  return command
    .option('--url <url>', 'URL of the server (FLEETPOST_URL)')
    .option('--ca <file>', 'authority to trust, PEM (FLEETPOST_CA)')
    .option('--pins <pins>', 'SHA-256 of public keys to trust, base64, with commas (FLEETPOST_PINS)')
    .option('--queue <file>', 'keep here what is sent while the server is away (FLEETPOST_QUEUE)');
}

/** `agent start|run|stop|status|version|install`. */
export function addAgentCommands(program: Command): void {
  const agent = program.command('agent').description('run the agent of a device on a local socket');
  const add = (name: string, description: string): Command => agent.command(name).description(description);
  withSocket(withServer(add('start', 'start the agent in the background, unless it runs'))).action((flags) =>
    runAgent(['start'], flags),
  );
  withSocket(withServer(add('run', 'run the agent in the foreground'))).action((flags) =>
    runAgent(['run'], flags),
  );
  withSocket(add('stop', 'end the agent')).action((flags) => runAgent(['stop'], flags));
  withSocket(add('status', 'say whether the agent is connected; if not, exit status 1')).action((flags) =>
    runAgent(['status'], flags),
  );
  add('version', 'print the version of the agent that the SDKs ask for').action(() =>
    runAgent(['version'], {}),
  );
  withServer(add('install', 'put the agent where an SDK looks for its own'))
    .argument('<folder>', 'the folder .agent of the SDK')
    .action((folder, flags) => runAgent(['install', folder], flags));
}
