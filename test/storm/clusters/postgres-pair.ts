import { randomUUID } from 'node:crypto';
import { chmodSync, rmSync } from 'node:fs';
import { NetworkNamespace } from '../../harness/machine/network-namespace.ts';
import { temporaryFolder } from '../../harness/machine/temporary-folder.ts';
import { RelayPath } from '../../harness/postgres/database-path.ts';
import { patiently } from '../../harness/postgres/postgres.ts';
import type { DatabaseCluster } from './database-cluster.ts';
import { PostgresMember } from './postgres-member.ts';

/** Options of the pair. */
export interface PairOptions {
  /** Nodes that have a network of their own, with a cable that can be pulled; needs root. */
  networks?: number;
}

/** A primary and its synchronous standby on loopback; when the one is killed, the other is promoted. */
export class PostgresPair implements DatabaseCluster {
  readonly #folder: string;
  readonly #namespaces: NetworkNamespace[];
  readonly #paths: RelayPath[] = [];
  #primary: PostgresMember;
  #standby: PostgresMember;
  #frozen: PostgresMember | undefined;

  private constructor(
    folder: string,
    namespaces: NetworkNamespace[],
    primary: PostgresMember,
    standby: PostgresMember,
  ) {
    this.#folder = folder;
    this.#namespaces = namespaces;
    this.#primary = primary;
    this.#standby = standby;
  }

  static async start({ networks = 0 }: PairOptions = {}): Promise<PostgresPair> {
    const namespaces = Array.from({ length: networks }, () => new NetworkNamespace());
    const addresses = namespaces.map(({ outside }) => outside);
    const folder = temporaryFolder();
    chmodSync(folder, 0o755);
    const primary = await PostgresMember.create(folder, 'one', addresses);
    const standby = await PostgresMember.create(folder, 'two', addresses);
    primary.initialize();
    await primary.begin();
    const pair = new PostgresPair(folder, namespaces, primary, standby);
    standby.copy(primary);
    await pair.#attach();
    return pair;
  }

  get primary(): PostgresMember {
    return this.#primary;
  }

  async path(): Promise<RelayPath> {
    const path = await RelayPath.start(this.#namespaces[this.#paths.length]);
    path.lead(this.#primary.port);
    this.#paths.push(path);
    return path;
  }

  async create(): Promise<string> {
    const name = `test_${randomUUID().replaceAll('-', '')}`;
    await this.ask(`CREATE DATABASE ${name}`);
    return name;
  }

  ask<T>(text: string): Promise<T[]> {
    return this.#primary.ask<T>(text);
  }

  async failOver(): Promise<void> {
    await this.#primary.end('SIGKILL');
    this.thaw();
    [this.#primary, this.#standby] = [this.#standby, this.#primary];
    // Nobody is there that a commit could wait for, as patroni sees it too.
    await this.#primary.waitFor(undefined);
    await this.#primary.ask('SELECT pg_promote(true, 60)');
    for (const path of this.#paths) path.lead(this.#primary.port);
  }

  async crashPrimary(): Promise<void> {
    await this.#primary.end('SIGKILL');
    await this.#primary.begin();
  }

  async freezePrimary(): Promise<void> {
    this.#frozen = this.#primary;
    this.#frozen.freeze();
  }

  async freezeStandby(): Promise<void> {
    this.#frozen = this.#standby;
    this.#frozen.freeze();
  }

  thaw(): void {
    this.#frozen?.thaw();
    this.#frozen = undefined;
  }

  /** Makes what was killed a standby. */
  async healed(): Promise<void> {
    if (!this.#standby.isRunning) {
      // From here on the timelines differ: without it, pg_rewind may not see that they do.
      await this.#primary.ask('CHECKPOINT');
      try {
        this.#standby.rewind(this.#primary);
      } catch {
        this.#standby.copy(this.#primary);
      }
    }
    await this.#attach();
  }

  async #attach(): Promise<void> {
    if (!this.#standby.isRunning) await this.#standby.follow(this.#primary);
    await this.#primary.waitFor(this.#standby);
    await patiently(async () => {
      if (!(await this.#isSynchronous())) throw new Error('the standby does not follow the primary');
    });
  }

  async #isSynchronous(): Promise<boolean> {
    const rows = await this.ask(
      `SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'`,
    );
    return rows.length > 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.thaw();
    for (const path of this.#paths) await path[Symbol.asyncDispose]();
    for (const namespace of this.#namespaces) namespace[Symbol.dispose]();
    await this.#primary.end('SIGKILL');
    await this.#standby.end('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
