import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface ProcessOptions {
  environment?: NodeJS.ProcessEnv;
  /** Another user to run as; only root can say so. */
  user?: { uid: number; gid: number };
}

/** Kept of what a process says on stderr, for the error when it ends early. */
const stderrLengthMax = 4_000;

const running = new Set<ServerProcess>();

process.on('exit', () => {
  for (const { pid } of running) process.kill(pid, 'SIGKILL');
});

/** A child process that runs until it is stopped, and that never outlives this one. */
export class ServerProcess {
  readonly pid: number;
  /** The first line it prints: our own server processes say there that they are ready. */
  readonly firstLine: Promise<string>;
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown>;
  #stderr = '';

  private constructor(file: string, child: ChildProcess, pid: number) {
    this.#child = child;
    this.pid = pid;
    running.add(this);
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-stderrLengthMax);
    });
    this.#exit = once(child, 'close').then(() => running.delete(this));
    const line = new Promise<string>((resolve) => {
      if (child.stdout) createInterface(child.stdout).on('line', resolve);
    });
    this.firstLine = Promise.race([
      line,
      this.#exit.then(() => {
        throw new Error(`${file} ended with ${child.exitCode ?? child.signalCode}: ${this.#stderr.trim()}`);
      }),
    ]);
    // Whoever does not wait for a line is told by the next request that fails.
    this.firstLine.catch(() => {});
  }

  /** @throws Error when the file cannot be run. */
  static async start(
    file: string,
    args: readonly string[],
    { environment = {}, user }: ProcessOptions = {},
  ): Promise<ServerProcess> {
    const child = spawn(file, args, {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...user,
    });
    await once(child, 'spawn');
    return new ServerProcess(file, child, child.pid ?? Number.NaN);
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Ends it and waits for its end. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.isRunning) this.#child.kill(signal);
    await this.#exit;
  }
}

/** Runs a TypeScript file of ours in a process of its own; `argument` is its one argument, as JSON. */
export function startScript(file: URL, argument: unknown): Promise<ServerProcess> {
  const args = ['--import', import.meta.resolve('tsx'), file.pathname, JSON.stringify(argument)];
  return ServerProcess.start(process.execPath, args);
}
