import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../../src/device/simulator/run/free-port.ts';
import { temporaryFolder } from '../../harness/machine/temporary-folder.ts';
import { patiently } from '../../harness/postgres/postgres.ts';
import type { DatabaseCluster } from './database-cluster.ts';
import { HaproxyPath } from './haproxy-path.ts';
import { PatroniMember } from './patroni-member.ts';
import { ask } from './postgres-member.ts';

async function startEtcd(folder: string): Promise<{ etcd: ChildProcess; etcdPort: number }> {
  const [etcdPort, peerPort] = [await freePort(), await freePort()];
  const [clients, peers] = [`http://127.0.0.1:${etcdPort}`, `http://127.0.0.1:${peerPort}`];
  const etcd = spawn(
    'etcd',
    [
      ...['--name', 'one', '--data-dir', join(folder, 'etcd')],
      ...['--listen-client-urls', clients, '--advertise-client-urls', clients],
      ...['--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers],
      ...['--initial-cluster', `one=${peers}`],
    ],
    { stdio: 'ignore' },
  );
  await patiently(async () => {
    if (!(await fetch(`${clients}/health`)).ok) throw new Error('etcd is not well');
  });
  return { etcd, etcdPort };
}

/**
 * A cluster as operators run it: two servers under patroni, which keeps in etcd who is primary, and an HAProxy for each
 * node.
 */
export class PatroniCluster implements DatabaseCluster {
  readonly #folder: string;
  readonly #etcd: ChildProcess;
  readonly #members: readonly PatroniMember[];
  readonly #paths: HaproxyPath[] = [];
  #frozen: PatroniMember | undefined;

  private constructor(folder: string, etcd: ChildProcess, members: readonly PatroniMember[]) {
    this.#folder = folder;
    this.#etcd = etcd;
    this.#members = members;
  }

  static async start(): Promise<PatroniCluster> {
    const folder = temporaryFolder();
    chmodSync(folder, 0o755);
    const { etcd, etcdPort } = await startEtcd(folder);
    const members = [
      await PatroniMember.create(folder, 'one', etcdPort),
      await PatroniMember.create(folder, 'two', etcdPort),
    ];
    const cluster = new PatroniCluster(folder, etcd, members);
    await cluster.healed();
    return cluster;
  }

  async path(): Promise<HaproxyPath> {
    const path = await HaproxyPath.start(this.#folder, this.#members);
    this.#paths.push(path);
    // It does not know yet who is primary.
    await patiently(() => ask(path.port, 'SELECT 1'));
    return path;
  }

  async create(): Promise<string> {
    const name = `test_${randomUUID().replaceAll('-', '')}`;
    await this.ask(`CREATE DATABASE ${name}`);
    return name;
  }

  async ask<T>(text: string): Promise<T[]> {
    return ask<T>((await this.#primary()).port, text);
  }

  /** Kills the primary and its patroni, so that the other takes over when its lease has run out. */
  async failOver(): Promise<void> {
    (await this.#primary()).kill();
    this.thaw();
  }

  async crashPrimary(): Promise<void> {
    (await this.#primary()).killPostgres();
  }

  async freezePrimary(): Promise<void> {
    this.#frozen = await this.#primary();
    this.#frozen.freeze();
  }

  async freezeStandby(): Promise<void> {
    const primary = await this.#primary();
    this.#frozen = this.#members.find((member) => member !== primary);
    this.#frozen?.freeze();
  }

  thaw(): void {
    this.#frozen?.thaw();
    this.#frozen = undefined;
  }

  async healed(): Promise<void> {
    for (const member of this.#members) member.begin();
    await patiently(async () => {
      const primary = await this.#primary();
      if (!(await primary.hasSynchronousStandby())) throw new Error('no standby follows the primary');
    });
  }

  #primary(): Promise<PatroniMember> {
    return patiently(async () => {
      for (const member of this.#members) if (await member.isPrimary()) return member;
      throw new Error('nobody is primary');
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.thaw();
    for (const path of this.#paths) await path[Symbol.asyncDispose]();
    for (const member of this.#members) member.kill();
    const exited = once(this.#etcd, 'exit');
    this.#etcd.kill('SIGKILL');
    await exited;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
