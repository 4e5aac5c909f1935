import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError } from '../../../core/errors.ts';

/** Report of a server that is ready: the document of `serve --json`. */
export interface ServerReport {
  url: string;
  admin_url: string;
  data: string;
  shards: number;
  pid: number;
  cert_file: string;
  demo: { fleet_id: string; device_id: string; device_secret: string; mail_id: string } | null;
}

/** Options of a server process. */
export interface ServerProcessOptions {
  /** Flags of `serve`. */
  flags?: readonly string[];
  environment: NodeJS.ProcessEnv;
  /** Kept of what it says, from the end. */
  outputLengthMax?: number;
}

/** A server of this process's own: it ends with this one at the latest, however that ends. */
export class ServerProcess {
  readonly child: ChildProcess;
  /** Settles when it is ready. Rejects with an OperatorError if it ends instead. */
  readonly ready: Promise<ServerReport>;
  /** Status and signal of its end. */
  readonly ended: Promise<[number | null, NodeJS.Signals | null]>;
  /** Log lines, and whatever else it prints. */
  output = '';

  /** Starts it. `command`: the words that run the program, before those of `serve`. */
  constructor(
    command: readonly string[],
    { flags = [], environment, outputLengthMax }: ServerProcessOptions,
  ) {
    const [file = '', ...words] = [...command, 'serve', '--json', '--no-parent', ...flags];
    this.child = spawn(file, words, {
      env: environment,
      // As a supervisor's child, which ends when the channel does.
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // Ctrl-C is for this process, which ends it in its turn.
      detached: true,
    });
    // Its standard output stays empty: what it reports comes as a message.
    for (const output of [this.child.stdout, this.child.stderr]) {
      output?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
        if (outputLengthMax !== undefined) this.output = this.output.slice(-outputLengthMax);
      });
    }
    this.ended = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('exit', (status, signal) => resolve([status, signal]));
    });
    this.ready = Promise.race([
      new Promise<ServerReport>((resolve) => {
        this.child.once('message', (message) =>
          resolve(JSON.parse((message as { greeting: string }).greeting) as ServerReport),
        );
      }),
      this.ended.then(([status, signal]) => {
        throw new OperatorError(
          `The server ended with ${signal ?? status} before it was ready: ${this.output}`,
        );
      }),
    ]);
    // Who starts it may end it without waiting.
    this.ready.catch(() => {});
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Ends it and waits for its end; answers its status. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.isRunning) this.child.kill(signal);
    const [status] = await this.ended;
    return status;
  }
}

/** The token of the admin API of a server on this machine. */
export function tokenOf({ data }: Pick<ServerReport, 'data'>): string {
  return (JSON.parse(readFileSync(join(data, 'admin.json'), 'utf8')) as { token: string }).token;
}
