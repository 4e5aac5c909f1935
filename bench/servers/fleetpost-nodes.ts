import { execFile } from 'node:child_process';
import type { RecordableHistogram } from 'node:perf_hooks';
import { promisify } from 'node:util';
import { environmentName } from '../../src/server/configuration/config.ts';
import type { Postgres } from '../../test/harness/postgres/postgres.ts';
import { mainFile } from '../../test/harness/server/server.ts';
import { Fleetpost } from './fleetpost.ts';
import { enqueue, type Mail } from './mail-queue.ts';
import { missingPostgres, startPostgres, synchronousCommit } from './postgres.ts';
import type { Credentials, MailServer, StartOptions, Subject } from './subject.ts';

/** Nodes of Fleetpost, equal ones, on a PostgreSQL that is theirs alone. */
export class FleetpostNodes implements MailServer {
  readonly nodes: readonly Fleetpost[];
  readonly url: string;
  readonly certFile: string;
  readonly devices: readonly Credentials[];
  readonly #database: Postgres;

  private constructor(nodes: readonly Fleetpost[], devices: readonly Credentials[], database: Postgres) {
    const [{ url, certFile } = { url: '', certFile: '' }] = nodes;
    this.nodes = nodes;
    this.url = url;
    this.certFile = certFile;
    this.devices = devices;
    this.#database = database;
  }

  static async start(count: number, { shards, devices, tls }: StartOptions): Promise<FleetpostNodes> {
    const database = await startPostgres();
    const store = { engine: 'postgres' as const, shards: [await database.create()] };
    const environment = { ...process.env, [environmentName('store')]: JSON.stringify(store) };
    await promisify(execFile)(process.execPath, [mainFile, 'migrate'], { env: environment });
    const options = { shards, config: { store }, ...(tls && { tls }) };
    const first = await Fleetpost.start({ ...options, devices });
    const nodes = [first];
    // After the fleet is there, so that none has to learn of it first.
    while (nodes.length < count) nodes.push(await Fleetpost.startNode(options));
    return new FleetpostNodes(nodes, first.devices, database);
  }

  processIds(): number[] {
    return [...this.nodes.flatMap((node) => node.processIds()), this.#database.pid];
  }

  databaseProcessIds(): number[] {
    return [this.#database.pid];
  }

  /** Queues mail through the admin API of each node in turn. */
  enqueue(mails: readonly Mail[], latency?: RecordableHistogram): Promise<string[]> {
    const addresses = this.nodes.map(({ adminUrl, token }) => ({ url: adminUrl, token }));
    return enqueue(addresses, mails, latency);
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) await node.stop();
    await this.#database[Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

/** So many nodes on one database; `shards` is the number of worker threads of each. */
export function fleetpostOnPostgres(nodes: number): Subject<FleetpostNodes> {
  return {
    name: 'fleetpost on PostgreSQL',
    durability: synchronousCommit,
    missing: missingPostgres,
    start: (options) => FleetpostNodes.start(nodes, options),
  };
}
