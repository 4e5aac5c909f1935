import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chownSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { account, owner, program, runProgram } from './postgres-program.ts';
import { killTree } from './process-tree.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** To who runs the server. */
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

/** Folder of the server that runs for as long as the tests of all files do: see contract/postgres-setup.ts. */
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

/**
 * A real PostgreSQL server on a folder and a socket of its own. Without fsync, which only a power cut would miss: what
 * tests kill are processes, and the kernel keeps what those wrote.
 */
export class Postgres {
  /** Folder of its data, and of its socket. */
  readonly folder: string;
  readonly #settings: readonly string[];
  /** TCP port, which takes `listen_addresses`; the socket is named by it. */
  readonly #port: number;
  #process: ReturnType<typeof spawn> | undefined;

  private constructor(folder: string, settings: readonly string[], port: number) {
    this.#port = port;
    this.folder = folder;
    this.#settings = settings;
  }

  /** `settings`: as postgresql.conf has them, `name=value`. */
  static async start(settings: readonly string[] = [], port = 5432): Promise<Postgres> {
    const folder = temporaryFolder();
    giveAway(folder);
    const data = join(folder, 'data');
    runProgram(program('initdb'), ['-D', data, '-U', owner, '-A', 'trust', '-E', 'UTF8', '--locale=C']);
    const postgres = new Postgres(folder, settings, port);
    await postgres.begin();
    return postgres;
  }

  /** Path of the socket that clients connect to. */
  get socket(): string {
    return join(this.folder, `.s.PGSQL.${this.#port}`);
  }

  /** Answers the URL of a new, empty database. */
  create(name?: string, template = 'template1'): Promise<string> {
    return create(this.folder, template, name);
  }

  /** Some statements, as its owner. */
  run(...statements: string[]): Promise<void> {
    return run(this.folder, statements, this.#port);
  }

  /** Writes a file that the server may read, and nobody else. Answers its path. */
  write(name: string, text: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    giveAway(path);
    return path;
  }

  /** SIGSTOP and SIGCONT: to it and all processes of its connections. */
  signal(signal: NodeJS.Signals): void {
    const { pid } = this.#process ?? {};
    if (pid === undefined) throw new Error('there is no process');
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
    for (const one of [pid, ...children.map(Number)]) if (one > 0) process.kill(one, signal);
  }

  /** Starts the process, also again after `end`. */
  async begin(): Promise<void> {
    const settings = [
      `unix_socket_directories=${this.folder}`,
      `port=${this.#port}`,
      'listen_addresses=',
      'fsync=off',
      ...this.#settings,
    ];
    const flags = settings.flatMap((setting) => ['-c', setting]);
    this.#process = spawn(program('postgres'), ['-D', join(this.folder, 'data'), ...flags], {
      ...account(),
      stdio: 'ignore',
    });
    const endMs = performance.now() + 30_000;
    for (;;) {
      const client = new Client({ connectionString: urlOf(this.folder, owner, this.#port) });
      try {
        await client.connect();
        await client.end();
        return;
      } catch (error) {
        if (performance.now() > endMs || this.#process.exitCode !== null) throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  /**
   * SIGINT: at once but in order. SIGKILL: all of its processes, as if the machine were gone: a backend by itself would
   * go on committing for some moments.
   */
  async end(signal: NodeJS.Signals = 'SIGINT'): Promise<void> {
    const ending = this.#process;
    if (ending === undefined || ending.exitCode !== null || ending.signalCode !== null) return;
    const exited = new Promise((resolve) => ending.once('exit', resolve));
    if (signal === 'SIGKILL' && ending.pid !== undefined) killTree(ending.pid);
    else ending.kill(signal);
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
