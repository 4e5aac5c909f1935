import type { ChildProcess } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { Agent } from 'undici';
import {
  ServerProcess,
  type ServerReport,
  tokenOf,
} from '../../../src/device/simulator/run/server-process.ts';
import { type Config, type ConfigKey, environmentName } from '../../../src/server/configuration/config.ts';
import { temporaryFolder } from '../machine/temporary-folder.ts';
import { createMigrated } from '../postgres/postgres.ts';

export type { ServerReport } from '../../../src/device/simulator/run/server-process.ts';
export { temporaryFolder } from '../machine/temporary-folder.ts';

/** Path of the program, as it is shipped. */
export const mainFile = new URL('../../../dist/main.js', import.meta.url).pathname;

/** The shard count that this run of the suite is for. */
export const shards = Number(process.env.SHARDS ?? 1);
/** Storage engine of this run of the suite. */
export const engine = process.env.ENGINE === 'postgres' ? 'postgres' : 'lmdb';
const { TEST_CERT_FILE: tlsCertFile, TEST_KEY_FILE: tlsKeyFile } = process.env;
/** Configures a folder that is to have all that a server makes in it. */
export const ownCertificate = { tlsCertFile: '', tlsKeyFile: '' };
/**
 * Certificate of all servers that are started here, where setup/certificate.ts has made one; else each makes its own.
 */
const certificate = tlsCertFile && tlsKeyFile ? { tlsCertFile, tlsKeyFile } : {};
/** Clients of a test are many, and have one address. */
const oneAddress = { connectionsPerSecondPerAddressMax: 0, adminConnectionsPerSecondPerAddressMax: 0 };
/** Databases by data folder of this process, kept across restarts. */
const databases = new Map<string, string>();

/** Database of a data folder of this process; undefined where the data is in the folder. */
export function databaseOf(folder: string): string | undefined {
  return databases.get(folder);
}

/** A setting of `store` that is on databases. */
export type DatabaseStore = Extract<Config['store'], { engine: 'postgres' }>;

/** Creates so many new databases with their tables, as one store that several servers may be on. */
export async function createStore(databasesCount = 1): Promise<DatabaseStore> {
  const urls = await Promise.all(Array.from({ length: databasesCount }, createMigrated));
  return { engine: 'postgres', shards: urls };
}

/** The store of a server on that data folder, unless its test has one: a new one for a new folder. */
async function storeOf(folder: string): Promise<Pick<Config, 'store'> | undefined> {
  if (engine === 'lmdb') return undefined;
  const url = databases.get(folder);
  if (url !== undefined) return { store: { engine, shards: [url] } };
  const store = await createStore();
  databases.set(folder, store.shards[0] ?? '');
  return { store };
}

export interface StartOptions {
  /** The program of another version. */
  program?: string | undefined;
  /** Flags of `serve`. */
  flags?: readonly string[];
  environment?: NodeJS.ProcessEnv;
  /** The process's limit of open files, which it cannot raise. */
  openFilesMax?: number;
  /** Flags of Node. */
  nodeFlags?: readonly string[];
}

/**
 * Config of the server that files share: fleets of one file wait for nothing longer than they must, and have no limit
 * in common with others.
 */
const sharedConfig: Partial<Config> = {
  activityFlushSeconds: 1,
  actionAttemptsMax: 1,
  unauthorizedMax: 0,
  anonymousRequestsPerSecondMax: 0,
  deviceRequestsPerSecondMax: 0,
};
let shared: Promise<TestServer> | undefined;

/** A real server process over real TLS on a data folder of its own. `await using` stops it. */
export class TestServer implements AsyncDisposable {
  readonly report: ServerReport;
  readonly ca: string;
  readonly token: string;
  readonly agent: Agent;
  /** Requests at once, as many as a client's pool of connections would have: beyond its queue the admin API refuses. */
  #adminFree = 64;
  readonly #adminWaiting: (() => void)[] = [];
  readonly #process: ServerProcess;
  readonly #ownsData: boolean;

  private constructor(server: ServerProcess, report: ServerReport, ownsData: boolean) {
    this.#process = server;
    this.report = report;
    this.#ownsData = ownsData;
    this.ca = readFileSync(report.cert_file, 'utf8');
    this.token = tokenOf(report);
    this.agent = TestServer.agentFor(this.ca);
  }

  /** The one that the files of this process share, each with fleets of its own. Nobody ends it: it ends with the process. */
  static async shared(): Promise<TestServer> {
    shared ??= TestServer.start(sharedConfig).then((server) => {
      // At once: an end in order would outlast this process, which is not waited for.
      process.once('SIGTERM', () => {
        server.process.kill('SIGKILL');
        rmSync(server.report.data, { recursive: true, force: true, maxRetries: 3 });
        process.kill(process.pid, 'SIGTERM');
      });
      return server;
    });
    const server = await shared;
    // Log lines for other files are no matter of this one.
    server.#process.output = '';
    return server;
  }

  /** `config` goes in through the environment. A given `data` folder is left behind; else it is removed. */
  static async start(
    config: Partial<Config> = {},
    data?: string,
    options: StartOptions = {},
  ): Promise<TestServer> {
    const server = await TestServer.#spawn(config, data ?? temporaryFolder(), options);
    return new TestServer(server, await server.ready, data === undefined);
  }

  /** Starts a server and kills it so much later, whether it is ready then or not. */
  static async killStart(config: Partial<Config>, data: string, afterMs: number): Promise<void> {
    const server = await TestServer.#spawn(config, data, {});
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    await server.end('SIGKILL');
  }

  static async #spawn(
    config: Partial<Config>,
    folder: string,
    {
      environment: extraEnvironment = {},
      openFilesMax,
      nodeFlags = [],
      flags = [],
      program = mainFile,
    }: StartOptions,
  ): Promise<ServerProcess> {
    const environment: NodeJS.ProcessEnv = {
      FLEETPOST_LISTEN: '127.0.0.1:0',
      FLEETPOST_ADMIN: '127.0.0.1:0',
      FLEETPOST_SHARDS: String(shards),
      FLEETPOST_DATA: folder,
      FLEETPOST_LOG_LEVEL: 'warn',
      // Many tests expect an empty log, on machines that stand still now and then.
      FLEETPOST_STALL_MILLISECONDS: '60000',
    };
    const store = config.store === undefined ? await storeOf(folder) : undefined;
    // A configuration file has its own say; the environment would have the last word.
    const shared = flags.includes('--config') ? {} : { ...oneAddress, ...certificate };
    for (const [key, value] of Object.entries({ ...shared, ...store, ...config })) {
      environment[environmentName(key as ConfigKey)] =
        typeof value === 'object' ? JSON.stringify(value) : String(value);
    }
    const command = [process.execPath, ...nodeFlags, program];
    if (openFilesMax !== undefined)
      command.unshift('bash', '-c', `ulimit -n ${openFilesMax}; exec "$0" "$@"`);
    return new ServerProcess(command, {
      flags,
      environment: { ...process.env, ...environment, ...extraEnvironment },
    });
  }

  static agentFor(ca: string): Agent {
    return new Agent({ connect: { ca }, connections: null, bodyTimeout: 0 });
  }

  get process(): ChildProcess {
    return this.#process.child;
  }

  get url(): string {
    return this.report.url;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** Log lines so far, and whatever else it prints. */
  get stderr(): string {
    return this.#process.output;
  }

  get isRunning(): boolean {
    return this.#process.isRunning;
  }

  /** A request to the admin API. `body` is sent as JSON, or as it is when it is text. */
  async admin<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<AdminAnswer<T>> {
    if (this.#adminFree > 0) this.#adminFree -= 1;
    else await new Promise<void>((resolve) => this.#adminWaiting.push(resolve));
    try {
      return await this.#ask<T>(method, path, body);
    } finally {
      const next = this.#adminWaiting.shift();
      if (next === undefined) this.#adminFree += 1;
      else next();
    }
  }

  async #ask<T>(method: string, path: string, body?: unknown): Promise<AdminAnswer<T>> {
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
    const [status] = await this.#process.ended;
    return status;
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
