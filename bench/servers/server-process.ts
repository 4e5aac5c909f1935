import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** Kept of what a process says on stderr, for the error when it ends early. */
const stderrLengthMax = 4_000;

const running = new Set<ChildProcess>();

// Not SIGKILL: nginx would leave processes of theirs behind.
process.on('exit', () => {
  for (const child of running) child.kill('SIGTERM');
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
    running.add(child);
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-stderrLengthMax);
    });
    this.#exit = once(child, 'close').then(() => running.delete(child));
    const line = new Promise<string>((resolve) => {
      if (child.stdout) createInterface(child.stdout).on('line', resolve);
    });
    this.firstLine = Promise.race([
      line,
      this.#exit.then(() => {
        throw new Error(`${file} ended with ${child.exitCode ?? child.signalCode}: ${this.#stderr.trim()}`);
      }),
    ]);
    // A caller that does not wait for a line learns of the end by the next request that fails.
    this.firstLine.catch(() => {});
  }

  /** @throws Error when the file cannot be run. */
  static async start(file: string, args: readonly string[]): Promise<ServerProcess> {
    const child = spawn(file, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    await once(child, 'spawn');
    return new ServerProcess(file, child, child.pid ?? Number.NaN);
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Ends it and waits for its end. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isRunning) this.#child.kill('SIGTERM');
    await this.#exit;
  }
}

const plainTypeScript = new URL('../plain-typescript.mjs', import.meta.url).href;

/** The arguments with which Node runs a TypeScript file of ours; `argument` is its one argument, as JSON. */
export function scriptArguments(file: URL, argument: unknown): string[] {
  return ['--import', plainTypeScript, file.pathname, JSON.stringify(argument)];
}

export function startScript(file: URL, argument: unknown): Promise<ServerProcess> {
  return ServerProcess.start(process.execPath, scriptArguments(file, argument));
}
