import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, fetch } from 'undici';
import type { Config } from '../../src/core/config.ts';
import { type ConfigKey, environmentName } from '../../src/core/config.ts';

const mainFile = new URL('../../dist/main.js', import.meta.url).pathname;

/** The shard count that this run of the suite is for. */
export const shards = Number(process.env.SHARDS ?? 1);

export interface ServerReport {
  url: string;
  admin_url: string;
  data: string;
  shards: number;
  pid: number;
  cert_file: string;
  demo: { fleet_id: string; device_id: string; device_secret: string; mail_id: string } | null;
}

export interface StartOptions {
  /** Of `serve`. */
  flags?: readonly string[];
  environment?: NodeJS.ProcessEnv;
  /** The process's limit of open files, which it cannot raise. */
  openFilesMax?: number;
}

/** A data folder that is gone with the server that is stopped last on it. */
export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
}

/** A real server process over real TLS on a data folder of its own. `await using` stops it. */
export class TestServer implements AsyncDisposable {
  readonly report: ServerReport;
  readonly ca: string;
  readonly token: string;
  readonly agent: Agent;
  readonly process: ChildProcess;
  readonly #exit: Promise<number | null>;
  readonly #stderr: string[];
  readonly #ownsData: boolean;

  private constructor(
    child: ChildProcess,
    report: ServerReport,
    exit: Promise<number | null>,
    stderr: string[],
    ownsData: boolean,
  ) {
    this.process = child;
    this.report = report;
    this.#exit = exit;
    this.#stderr = stderr;
    this.#ownsData = ownsData;
    this.ca = readFileSync(report.cert_file, 'utf8');
    this.token = JSON.parse(readFileSync(join(report.data, 'admin.json'), 'utf8')).token;
    this.agent = TestServer.agentFor(this.ca);
  }

  /** `config` goes in through the environment. A given `data` folder is left behind; else it is removed. */
  static async start(
    config: Partial<Config> = {},
    data?: string,
    { environment: extraEnvironment = {}, openFilesMax, flags = [] }: StartOptions = {},
  ): Promise<TestServer> {
    const folder = data ?? temporaryFolder();
    const environment: NodeJS.ProcessEnv = {
      FLEETPOST_LISTEN: '127.0.0.1:0',
      FLEETPOST_ADMIN: '127.0.0.1:0',
      FLEETPOST_SHARDS: String(shards),
      FLEETPOST_DATA: folder,
      FLEETPOST_LOG_LEVEL: 'warn',
      // Many tests expect an empty log, on machines that stand still now and then.
      FLEETPOST_STALL_MILLISECONDS: '60000',
    };
    for (const [key, value] of Object.entries(config)) {
      environment[environmentName(key as ConfigKey)] = String(value);
    }
    const command = [process.execPath, mainFile, 'serve', '--json', '--no-parent', ...flags];
    if (openFilesMax !== undefined)
      command.unshift('bash', '-c', `ulimit -n ${openFilesMax}; exec "$0" "$@"`);
    const [file = '', ...args] = command;
    const child = spawn(file, args, {
      env: { ...process.env, ...environment, ...extraEnvironment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const stderr: string[] = [];
    child.stderr.setEncoding('utf8').on('data', (text: string) => stderr.push(text));
    const exit = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
    let stdout = '';
    const ready = new Promise<ServerReport>((resolve) => {
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        stdout += text;
        if (stdout.endsWith('\n')) resolve(JSON.parse(stdout));
      });
    });
    const report = await Promise.race([
      ready,
      exit.then((code) => {
        throw new Error(`the server ended with ${code} before it was ready: ${stderr.join('')}`);
      }),
    ]);
    return new TestServer(child, report, exit, stderr, data === undefined);
  }

  static agentFor(ca: string): Agent {
    return new Agent({ connect: { ca }, connections: null, bodyTimeout: 0 });
  }

  get url(): string {
    return this.report.url;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** Log lines so far. */
  get stderr(): string {
    return this.#stderr.join('');
  }

  get isRunning(): boolean {
    return this.process.exitCode === null && this.process.signalCode === null;
  }

  /** A request to the admin API. `body` is sent as JSON, or as it is when it is text. */
  async admin<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<AdminAnswer<T>> {
    const response = await fetch(`${this.report.admin_url}/admin/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: (text === '' ? undefined : JSON.parse(text)) as T };
  }

  /** SIGTERM; answers the exit status. */
  async stop(): Promise<number | null> {
    this.process.kill('SIGTERM');
    return this.ended();
  }

  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.ended();
  }

  async ended(): Promise<number | null> {
    await this.agent.destroy();
    return this.#exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isRunning) await this.stop();
    if (this.#ownsData) rmSync(this.report.data, { recursive: true, force: true });
  }
}

export interface AdminAnswer<T> {
  status: number;
  body: T;
}
