import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { freezeTree, killTree, thawTree } from '../machine/process-tree.ts';
import { temporaryFolder } from '../machine/temporary-folder.ts';
import { account, owner, program, runProgram } from './postgres-program.ts';

export const patienceMs = 60_000;

/** Tries until it does not throw any more. @throws what it threw last */
export async function patiently<A>(run: () => Promise<A>): Promise<A> {
  const endMs = performance.now() + patienceMs;
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (performance.now() > endMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** Gives a path to who runs the server. */
export function giveAway(path: string): void {
  const { uid, gid } = account();
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
}

/** The socket's folder is the host. */
function urlOf(folder: string, database: string, port = 5432): string {
  return `postgres://${owner}@/${database}?host=${encodeURIComponent(folder)}&port=${port}`;
}

/** The database that has the tables, on the server that all tests share: a copy takes a tenth of what making them does. */
export const migratedTemplate = 'migrated';
/** The same of which a node has made the parts of today. */
export const servedTemplate = 'served';

const newName = (): string => `test_${randomUUID().replaceAll('-', '')}`;

/** Some statements to the server of that folder, as its owner. */
async function run(folder: string, statements: readonly string[], port?: number): Promise<void> {
  const client = new Client({ connectionString: urlOf(folder, owner, port) });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

async function create(folder: string, template: string, name = newName()): Promise<string> {
  await run(folder, [`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`]);
  return urlOf(folder, name);
}

/** Folder of the server that runs for as long as the tests of all files do: see setup/postgres-server.ts. */
const sharedFolder = (): string => process.env.POSTGRES_FOLDER ?? '';

/** Answers the URL of a new, empty database on the server that tests share. */
export function createDatabase(): Promise<string> {
  return create(sharedFolder(), 'template1');
}

/** The same with the tables. */
export function createMigrated(): Promise<string> {
  return create(sharedFolder(), migratedTemplate);
}

/** Creates a database in which a node has served and ended: the next one is there sooner. */
export function createServed(): Promise<string> {
  return create(sharedFolder(), servedTemplate);
}

/** Drops a database of the server that tests share: hundreds of them would fill the memory that they are in. */
export async function dropDatabase(url: string): Promise<void> {
  const [, name] = /@\/(\w+)/.exec(url) ?? [];
  await run(sharedFolder(), [`DROP DATABASE ${name} WITH (FORCE)`]);
}

/** Those that run: none outlives this process. */
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const { pid } of running) if (pid !== undefined) killTree(pid);
});

/**
 * A real PostgreSQL server on a folder and a socket of its own. Without fsync, unless a setting says otherwise, which
 * only a power cut would miss: what tests kill are processes, and the kernel keeps what those wrote.
 */
export class Postgres {
  /** Folder of its data, its log, and its socket. */
  readonly folder: string;
  /** TCP port, which takes `listen_addresses`; the socket is named by it. */
  readonly port: number;
  readonly #settings: readonly string[];
  readonly #programOf: typeof program;
  #process: ChildProcess | undefined;

  protected constructor(
    folder: string,
    settings: readonly string[],
    port: number,
    programOf: typeof program,
  ) {
    this.folder = folder;
    this.port = port;
    this.#settings = settings;
    this.#programOf = programOf;
  }

  /**
   * `settings`: as postgresql.conf has them, `name=value`. `programOf`: `installedProgram` for Debian's instead of those
   * of the registry's package.
   */
  static async start(settings: readonly string[] = [], port = 5432, programOf = program): Promise<Postgres> {
    const folder = temporaryFolder();
    giveAway(folder);
    const postgres = new Postgres(folder, settings, port, programOf);
    postgres.initialize();
    await postgres.begin();
    return postgres;
  }

  protected get data(): string {
    return join(this.folder, 'data');
  }

  /** Makes a cluster of its own. */
  initialize(...flags: readonly string[]): void {
    const encoding = ['-E', 'UTF8', '--locale=C', ...flags];
    runProgram(this.#programOf('initdb'), ['-D', this.data, '-U', owner, '-A', 'trust', ...encoding]);
  }

  /** Path of the socket that clients connect to. */
  get socket(): string {
    return join(this.folder, `.s.PGSQL.${this.port}`);
  }

  get isRunning(): boolean {
    return this.#process !== undefined && running.has(this.#process);
  }

  /** Id of its first process, whose children the others are. */
  get pid(): number {
    if (this.#process?.pid === undefined) throw new Error('there is no process');
    return this.#process.pid;
  }

  /** Answers the URL of a new, empty database. */
  create(name?: string, template = 'template1'): Promise<string> {
    return create(this.folder, template, name);
  }

  /** Some statements, as its owner. */
  run(...statements: string[]): Promise<void> {
    return run(this.folder, statements, this.port);
  }

  /** Writes a file that the server may read, and nobody else. Answers its path. */
  write(name: string, text: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    giveAway(path);
    return path;
  }

  /** Stops it, and all processes of its connections, until `thaw`. */
  freeze(): void {
    freezeTree(this.pid);
  }

  thaw(): void {
    thawTree(this.pid);
  }

  /** Starts the process, also again after `end`; settles when it answers. `more`: further settings. */
  async begin(...more: readonly string[]): Promise<void> {
    const settings = [
      `unix_socket_directories=${this.folder}`,
      `port=${this.port}`,
      'listen_addresses=',
      'fsync=off',
      ...this.#settings,
      ...more,
    ];
    const log = openSync(join(this.folder, 'log'), 'a');
    const flags = ['-D', this.data, ...settings.flatMap((setting) => ['-c', setting])];
    const child = spawn(this.#programOf('postgres'), flags, { ...account(), stdio: ['ignore', log, log] });
    closeSync(log);
    running.add(child);
    child.once('exit', () => running.delete(child));
    this.#process = child;
    await patiently(async () => {
      if (!this.isRunning) throw new Error(`PostgreSQL has ended: see ${this.folder}/log`);
      await this.run('SELECT 1');
    });
  }

  /**
   * SIGINT: at once but in order. SIGKILL: all of its processes, as if the machine were gone: a backend by itself would
   * go on committing for some moments.
   */
  async end(signal: NodeJS.Signals = 'SIGINT'): Promise<void> {
    const ending = this.#process;
    if (ending === undefined || !this.isRunning) return;
    const exited = once(ending, 'exit');
    if (signal === 'SIGKILL') killTree(this.pid);
    else ending.kill(signal);
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
