import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { freePort } from '../../../src/device/simulator/run/free-port.ts';
import { giveAway, Postgres, patienceMs } from '../../harness/postgres/postgres.ts';
import { installedProgram, owner, runProgram } from '../../harness/postgres/postgres-program.ts';

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
export class PostgresMember extends Postgres {
  readonly name: string;

  private constructor(folder: string, name: string, port: number, addresses: readonly string[]) {
    const settings = [
      `listen_addresses=${['127.0.0.1', ...addresses].join()}`,
      'fsync=on',
      'max_connections=200',
      'wal_keep_size=1GB',
      'wal_retrieve_retry_interval=200ms',
    ];
    super(folder, settings, port, installedProgram);
    this.name = name;
  }

  /** Creates a member in a folder of that name, which it makes; nothing runs yet. */
  static async create(folder: string, name: string, addresses: readonly string[]): Promise<PostgresMember> {
    const own = join(folder, name);
    mkdirSync(own);
    giveAway(own);
    return new PostgresMember(own, name, await freePort(), addresses);
  }

  /** A cluster of its own, with the checksums that pg_rewind asks for. */
  override initialize(): void {
    super.initialize('-k');
    appendFileSync(join(this.data, 'pg_hba.conf'), 'host all all samenet trust\n');
  }

  /** Copies the primary's data anew. */
  copy(primary: PostgresMember): void {
    rmSync(this.data, { recursive: true, force: true });
    runProgram(installedProgram('pg_basebackup'), [
      ...['-D', this.data, '-h', '127.0.0.1', '-p', String(primary.port), '-U', owner],
      ...['-c', 'fast', '-X', 'stream'],
    ]);
  }

  /** Undoes what it has written and the other has not. @throws where it cannot be undone */
  rewind(primary: PostgresMember): void {
    const source = `host=127.0.0.1 port=${primary.port} user=${owner} dbname=${owner}`;
    runProgram(installedProgram('pg_rewind'), ['-D', this.data, `--source-server=${source}`]);
  }

  /** Starts it as the standby of another. Settles when it answers. */
  follow(primary: PostgresMember): Promise<void> {
    writeFileSync(join(this.data, 'standby.signal'), '');
    const to = `host=127.0.0.1 port=${primary.port} user=${owner} application_name=${this.name}`;
    return this.begin(`primary_conninfo=${to}`);
  }

  ask<T>(text: string): Promise<T[]> {
    return ask<T>(this.port, text);
  }

  /** Names of the standbys that a commit waits for; none: it waits for nobody. */
  async waitFor(standby: PostgresMember | undefined): Promise<void> {
    await this.ask(`ALTER SYSTEM SET synchronous_standby_names TO '${standby?.name ?? ''}'`);
    await this.ask('SELECT pg_reload_conf()');
  }
}
