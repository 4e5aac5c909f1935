import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, chownSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { freePort } from '../../src/device/simulator/run/free-port.ts';
import { account, installedProgram, owner, runProgram } from './postgres-program.ts';
import { freezeTree, killTree, thawTree } from './process-tree.ts';

const patienceMs = 60_000;

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

/** One statement to the server of that port, on a connection of its own. */
export async function ask<T>(port: number, text: string, database = owner): Promise<T[]> {
  const client = new Client({
    host: '127.0.0.1',
    port,
    user: owner,
    database,
    connectionTimeoutMillis: 5_000,
    query_timeout: patienceMs,
  });
  // The connection may end in between; without a listener that error would be thrown.
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(text)).rows as T[];
  } finally {
    client.end().catch(() => {});
  }
}

/** One of the servers of a pair: primary or standby. */
export class PostgresMember {
  readonly name: string;
  readonly port: number;
  readonly #folder: string;
  readonly #addresses: readonly string[];
  #process: ChildProcess | undefined;

  private constructor(name: string, port: number, folder: string, addresses: readonly string[]) {
    this.name = name;
    this.port = port;
    this.#folder = folder;
    this.#addresses = addresses;
  }

  /** In a folder of that name, which it makes; nothing runs yet. */
  static async create(folder: string, name: string, addresses: readonly string[]): Promise<PostgresMember> {
    const own = join(folder, name);
    mkdirSync(own);
    const { uid, gid } = account();
    if (uid !== undefined && gid !== undefined) chownSync(own, uid, gid);
    return new PostgresMember(name, await freePort(), own, addresses);
  }

  get #data(): string {
    return join(this.#folder, 'data');
  }

  /** A cluster of its own, with the checksums that pg_rewind asks for. */
  initialize(): void {
    runProgram(installedProgram('initdb'), [
      '-D',
      this.#data,
      '-U',
      owner,
      '-A',
      'trust',
      '-E',
      'UTF8',
      '--locale=C',
      '-k',
    ]);
    appendFileSync(join(this.#data, 'pg_hba.conf'), 'host all all samenet trust\n');
  }

  /** Copies the primary's data anew. */
  copy(primary: PostgresMember): void {
    rmSync(this.#data, { recursive: true, force: true });
    runProgram(installedProgram('pg_basebackup'), [
      ...['-D', this.#data, '-h', '127.0.0.1', '-p', String(primary.port), '-U', owner],
      ...['-c', 'fast', '-X', 'stream'],
    ]);
  }

  /** Undoes what it has written and the other has not. @throws where it cannot be undone */
  rewind(primary: PostgresMember): void {
    const source = `host=127.0.0.1 port=${primary.port} user=${owner} dbname=${owner}`;
    runProgram(installedProgram('pg_rewind'), ['-D', this.#data, `--source-server=${source}`]);
  }

  /** As the standby of another, or by itself. Settles when it answers. */
  async begin(primary?: PostgresMember): Promise<void> {
    const settings = [
      `port=${this.port}`,
      `listen_addresses=${['127.0.0.1', ...this.#addresses].join()}`,
      `unix_socket_directories=${this.#folder}`,
      'max_connections=200',
      'wal_keep_size=1GB',
      'wal_retrieve_retry_interval=200ms',
    ];
    if (primary !== undefined) {
      const to = `host=127.0.0.1 port=${primary.port} user=${owner} application_name=${this.name}`;
      settings.push(`primary_conninfo=${to}`);
      writeFileSync(join(this.#data, 'standby.signal'), '');
    }
    const said = openSync(join(this.#folder, 'log'), 'a');
    const child = spawn(
      installedProgram('postgres'),
      ['-D', this.#data, ...settings.flatMap((setting) => ['-c', setting])],
      { ...account(), stdio: ['ignore', said, said] },
    );
    this.#process = child;
    await patiently(async () => {
      if (child.exitCode !== null)
        throw new Error(`the server ${this.name} has ended: see ${this.#folder}/log`);
      await this.ask('SELECT 1');
    });
  }

  get isRunning(): boolean {
    const child = this.#process;
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  ask<T>(text: string): Promise<T[]> {
    return ask<T>(this.port, text);
  }

  /** Names of the standbys that a commit waits for; none: it waits for nobody. */
  async waitFor(standby: PostgresMember | undefined): Promise<void> {
    await this.ask(`ALTER SYSTEM SET synchronous_standby_names TO '${standby?.name ?? ''}'`);
    await this.ask('SELECT pg_reload_conf()');
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child?.pid === undefined || !this.isRunning) return;
    const exited = once(child, 'exit');
    killTree(child.pid);
    await exited;
  }

  freeze(): void {
    if (this.#process?.pid !== undefined) freezeTree(this.#process.pid);
  }

  thaw(): void {
    if (this.#process?.pid !== undefined) thawTree(this.#process.pid);
  }
}
