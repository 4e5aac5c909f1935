import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { AgentError } from './agent-error.ts';
import { askAgent } from './local-client.ts';
import type { AgentSettings } from './settings.ts';
import { requireOwnFolder } from './socket-place.ts';

const startMsMax = 10_000;

/** The daemon's report to the command that has started it. */
export type StartReport = { isStarted: true } | { isStarted: false; atom: string; text: string };

/**
 * Starts an agent that goes on after this command, unless one is there. file: what Node runs as the agent. Returns what
 * is printed.
 */
export async function startDaemon(
  { socketPath, identity }: AgentSettings,
  file: string,
  environment: NodeJS.ProcessEnv,
): Promise<string> {
  requireOwnFolder(socketPath);
  const running = await askAgent(socketPath, 'GET', '/', identity);
  if (running?.status === 401) {
    throw new AgentError(
      401,
      'unauthorized',
      `An agent of another device runs at ${socketPath}: stop it first.`,
    );
  }
  // It may have been started with a secret that is not the present one.
  if (running?.body.error === 'unauthorized') await stopDaemon(socketPath);
  else if (running !== undefined) return 'already_started: The agent runs.';
  const child = spawn(process.execPath, [file, 'run'], {
    detached: true,
    env: environment,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const exited = once(child, 'exit').then(() => undefined);
  const [report] = (await Promise.race([once(child, 'message'), exited])) ?? [];
  if (child.connected) child.disconnect();
  child.unref();
  const { isStarted, atom, text } = (report ?? {
    atom: 'failed',
    text: 'The agent has ended.',
  }) as StartReport & {
    atom: string;
    text: string;
  };
  if (isStarted) return `started: The agent runs as process ${child.pid}.`;
  if (atom !== 'already_started') throw new AgentError(500, atom, text);
  await untilAnswered(socketPath, true);
  return 'already_started: The agent runs.';
}

/** Ends the agent behind a socket. Returns what is printed. */
export async function stopDaemon(socketPath: string): Promise<string> {
  requireOwnFolder(socketPath);
  const answer = await askAgent(socketPath, 'DELETE', '/stop-agent');
  if (answer === undefined) return 'already_stopped: No agent runs.';
  await untilAnswered(socketPath, false);
  return 'stopped: The agent has ended.';
}

async function untilAnswered(socketPath: string, isWanted: boolean): Promise<void> {
  for (const endMs = performance.now() + startMsMax; performance.now() < endMs; ) {
    if (((await askAgent(socketPath, 'GET', '/')) !== undefined) === isWanted) return;
    await pause(20);
  }
  throw new AgentError(
    500,
    'timeout',
    `The agent at ${socketPath} did not ${isWanted ? 'start' : 'end'} in time.`,
  );
}

/** Says whether the agent behind a socket is connected. @throws AgentError if it is not. */
export async function daemonStatus(socketPath: string): Promise<string> {
  requireOwnFolder(socketPath);
  const answer = await askAgent(socketPath, 'GET', '/');
  if (answer === undefined) throw new AgentError(403, 'not_running', `No agent runs at ${socketPath}.`);
  const { connected, error, msg } = answer.body;
  if (connected === true) return 'connected: The server answers.';
  throw new AgentError(403, String(error), String(msg));
}
