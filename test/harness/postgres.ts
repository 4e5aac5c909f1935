import { spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chownSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { temporaryFolder } from './server.ts';

/** Of Debian's package, the newest; others have them in PATH. */
const debian = '/usr/lib/postgresql';
const owner = 'postgres';

function program(name: string): string {
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  return versions.length === 0 ? name : join(debian, versions[0] ?? '', 'bin', name);
}

/** PostgreSQL refuses to run as root: there it runs as the user that its package makes. */
function account(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(spawnSync('id', [flag, owner]).stdout));
  if (!uid || !gid) throw new Error(`there is no user ${owner}: install PostgreSQL from Debian's packages`);
  return { uid, gid };
}

/** The socket's folder is the host. */
function urlOf(folder: string, database: string): string {
  return `postgres://${owner}@/${database}?host=${encodeURIComponent(folder)}`;
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

/** A real PostgreSQL server on a folder and a socket of its own, durable as it comes. */
export class Postgres {
  /** Of its data, and of its socket. */
  readonly folder: string;
  readonly #settings: readonly string[];
  #process: ReturnType<typeof spawn> | undefined;

  private constructor(folder: string, settings: readonly string[]) {
    this.folder = folder;
    this.#settings = settings;
  }

  /** `settings`: as postgresql.conf has them, `name=value`. */
  static async start(settings: readonly string[] = []): Promise<Postgres> {
    const folder = temporaryFolder();
    const { uid, gid } = account();
    if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
    const data = join(folder, 'data');
    const made = spawnSync(
      program('initdb'),
      ['-D', data, '-U', owner, '-A', 'trust', '-E', 'UTF8', '--locale=C'],
      { ...account(), encoding: 'utf8' },
    );
    if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
    const postgres = new Postgres(folder, settings);
    await postgres.begin();
    return postgres;
  }

  /** Answers the URL of a new, empty database. */
  create(): Promise<string> {
    return createDatabase(this.folder);
  }

  /** Starts the process, also again after `end`. */
  async begin(): Promise<void> {
    const settings = [`unix_socket_directories=${this.folder}`, 'listen_addresses=', ...this.#settings];
    const flags = settings.flatMap((setting) => ['-c', setting]);
    this.#process = spawn(program('postgres'), ['-D', join(this.folder, 'data'), ...flags], {
      ...account(),
      stdio: 'ignore',
    });
    const endMs = performance.now() + 30_000;
    for (;;) {
      const client = new Client({ connectionString: urlOf(this.folder, owner) });
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
