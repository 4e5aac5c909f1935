import { type ChildProcess, spawn } from 'node:child_process';
import { chownSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort } from '../../../src/device/simulator/run/free-port.ts';
import { freezeTree, killTree, thawTree } from '../../harness/machine/process-tree.ts';
import { account, installedProgram, owner } from '../../harness/postgres/postgres-program.ts';
import type { Candidate } from './haproxy-path.ts';

/** Settings for patroni; the rest are its defaults: a lost primary is given up after 30 s. */
function configuration(member: Candidate, folder: string, etcdPort: number): object {
  return {
    scope: 'fleetpost',
    name: member.name,
    restapi: {
      listen: `127.0.0.1:${member.restPort}`,
      connect_address: `127.0.0.1:${member.restPort}`,
    },
    etcd3: { host: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs: {
        synchronous_mode: true,
        postgresql: { use_pg_rewind: true, parameters: { max_connections: 200, wal_keep_size: '1GB' } },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums'],
    },
    postgresql: {
      listen: `127.0.0.1:${member.port}`,
      connect_address: `127.0.0.1:${member.port}`,
      data_dir: join(folder, 'data'),
      bin_dir: dirname(installedProgram('postgres')),
      pgpass: join(folder, 'pgpass'),
      pg_hba: [
        'local all all trust',
        'host all all 127.0.0.1/32 trust',
        'host replication all 127.0.0.1/32 trust',
      ],
      parameters: { unix_socket_directories: folder },
      // Nothing asks for a password here, and patroni wants one to be named.
      authentication: {
        superuser: { username: owner, password: owner },
        replication: { username: owner, password: owner },
        rewind: { username: owner, password: owner },
      },
    },
  };
}

/** PostgreSQL under patroni, as on a machine of its own. */
export class PatroniMember implements Candidate {
  readonly name: string;
  readonly port: number;
  readonly restPort: number;
  readonly #folder: string;
  #patroni: ChildProcess | undefined;

  private constructor(name: string, port: number, restPort: number, folder: string) {
    this.name = name;
    this.port = port;
    this.restPort = restPort;
    this.#folder = folder;
  }

  static async create(folder: string, name: string, etcdPort: number): Promise<PatroniMember> {
    const own = join(folder, name);
    mkdirSync(own);
    const { uid, gid } = account();
    if (uid !== undefined && gid !== undefined) chownSync(own, uid, gid);
    const member = new PatroniMember(name, await freePort(), await freePort(), own);
    // JSON is YAML.
    writeFileSync(join(own, 'patroni.yml'), JSON.stringify(configuration(member, own, etcdPort)));
    return member;
  }

  get #isRunning(): boolean {
    const one = this.#patroni;
    return one !== undefined && one.exitCode === null && one.signalCode === null;
  }

  begin(): void {
    if (this.#isRunning) return;
    const said = openSync(join(this.#folder, 'log'), 'a');
    this.#patroni = spawn('patroni', [join(this.#folder, 'patroni.yml')], {
      ...account(),
      cwd: '/',
      env: { ...process.env, HOME: this.#folder },
      stdio: ['ignore', said, said],
    });
  }

  async isPrimary(): Promise<boolean> {
    try {
      const signal = AbortSignal.timeout(2_000);
      return (await fetch(`http://127.0.0.1:${this.restPort}/primary`, { signal })).status === 200;
    } catch {
      return false;
    }
  }

  /** Tells whether a standby that runs may be promoted without a loss, by what patroni has noted of it. */
  async hasSynchronousStandby(): Promise<boolean> {
    const signal = AbortSignal.timeout(2_000);
    const answer = await fetch(`http://127.0.0.1:${this.restPort}/cluster`, { signal });
    const { members } = (await answer.json()) as { members: { role: string; state: string }[] };
    return members.some(({ role, state }) => role === 'sync_standby' && /^(running|streaming)$/.test(state));
  }

  /** PostgreSQL alone: patroni stays, and does about it what it thinks right. */
  killPostgres(): void {
    for (const pid of this.#postmaster()) killTree(pid);
  }

  /** Kills as if the machine were gone. */
  kill(): void {
    const pid = this.#patroni?.pid;
    // First, so that it starts nothing new.
    if (pid !== undefined && this.#isRunning) killTree(pid);
    this.killPostgres();
  }

  freeze(): void {
    for (const pid of this.#all()) freezeTree(pid);
  }

  thaw(): void {
    for (const pid of this.#all()) thawTree(pid);
  }

  #all(): number[] {
    const pid = this.#patroni?.pid;
    return [...(pid === undefined || !this.#isRunning ? [] : [pid]), ...this.#postmaster()];
  }

  /** It is no child of patroni's, which may end before it. */
  #postmaster(): number[] {
    try {
      const pid = Number(
        readFileSync(join(this.#folder, 'data', 'postmaster.pid'), 'utf8').split('\n', 1)[0],
      );
      // The file outlives its process, and the number may be another's by then.
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      return command.includes(this.#folder) ? [pid] : [];
    } catch {
      return [];
    }
  }
}
