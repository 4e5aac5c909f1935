import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chownSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { account, owner, program, runProgram } from './postgres-program.ts';
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

/** Answers the URL of a new, empty database on the server of that folder. */
export async function createDatabase(folder: string): Promise<string> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const client = new Client({ connectionString: urlOf(folder, owner) });
  await client.connect();
  try {
    await client.query(`CREATE DATABASE ${name}`);
  } finally {
    await client.end();
  }
  return urlOf(folder, name);
}

/**
 * A real PostgreSQL server on a folder and a socket of its own. Without fsync, which only a power cut would miss: what
 * tests kill are processes, and the kernel keeps what those wrote.
 */
export class Postgres {
  /** Of its data, and of its socket. */
  readonly folder: string;
  readonly #settings: readonly string[];
  /** Of TCP, which takes `listen_addresses`; the socket is named by it. */
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

  /** What clients connect to. */
  get socket(): string {
    return join(this.folder, `.s.PGSQL.${this.#port}`);
  }

  /** Answers the URL of a new, empty database. */
  create(): Promise<string> {
    return createDatabase(this.folder);
  }

  /** Some statements, as its owner. */
  async run(...statements: string[]): Promise<void> {
    const client = new Client({ connectionString: urlOf(this.folder, owner, this.#port) });
    await client.connect();
    try {
      for (const statement of statements) await client.query(statement);
    } finally {
      await client.end();
    }
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

  /** SIGINT: at once but in order. SIGKILL: as a crash of this process; its children end by themselves. */
  async end(signal: NodeJS.Signals = 'SIGINT'): Promise<void> {
    const ending = this.#process;
    if (ending === undefined || ending.exitCode !== null || ending.signalCode !== null) return;
    const exited = new Promise((resolve) => ending.once('exit', resolve));
    ending.kill(signal);
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
