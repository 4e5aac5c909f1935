import { sleep } from '../../src/core/async.ts';
import { anyObject, createFleet } from '../harness/devices/device.ts';
import type { DatabasePath } from '../harness/postgres/database-path.ts';
import { execute } from '../harness/server/command.ts';
import { mainFile } from '../harness/server/server.ts';
import type { LoggedRecord } from '../harness/storage/log.ts';
import type { Requester } from './client.ts';
import { faults } from './cluster-faults.ts';
import type { DatabaseCluster } from './clusters/database-cluster.ts';
import { ask } from './clusters/postgres-member.ts';
import type { Findings } from './findings.ts';
import { Ledger } from './ledger.ts';
import { NodesClient } from './nodes-client.ts';
import { OutageWatch } from './outages.ts';
import { Relay, relayConfig } from './relay.ts';
import { StormNode } from './storm-node.ts';
import { StreamWatch } from './stream-watch.ts';
import { Subject } from './subject.ts';

const exclusiveDevices = 16;
const hotMailboxes = 2;
const clientsPerHotMailbox = 4;
const streams = 8;
const streamKeepAliveSeconds = 5;
/** Time in which each request is to be served once all is well again. */
const patienceMs = 60_000;
/** Time after the last repair within which what was lost on its way to a stream must have been made up for. */
const announcedMsMax = 3 * streamKeepAliveSeconds * 1_000;

export interface ClusterStormOptions {
  /** Each has one of the databases. */
  clusters: readonly DatabaseCluster[];
  seed: number;
  workers: number;
  databaseTimeoutMilliseconds: number;
  /** The program that its nodes begin with; that of today if absent. */
  program?: string | undefined;
}

/** How long nobody was served, by what had happened. */
export interface Outage {
  fault: string;
  node: string;
  milliseconds: number;
}

/** Two nodes on the same databases under load, while one thing after another breaks. */
export class ClusterStorm {
  readonly outages: Outage[] = [];
  readonly nodes: readonly StormNode[];
  readonly watches: StreamWatch[] = [];
  readonly #options: ClusterStormOptions;
  readonly #databases: readonly string[];
  readonly #ledger: Ledger;
  readonly #subjects: Subject[] = [];
  readonly #probes: OutageWatch[] = [];
  readonly #client: Requester;
  #relay: Relay | undefined;
  #isLoaded = false;

  private constructor(
    options: ClusterStormOptions,
    databases: readonly string[],
    paths: readonly (readonly DatabasePath[])[],
  ) {
    this.#options = options;
    this.#databases = databases;
    this.#ledger = new Ledger(options.seed, false);
    const { workers: shards, databaseTimeoutMilliseconds } = options;
    const config = { ...relayConfig, shards, databaseTimeoutMilliseconds, streamKeepAliveSeconds };
    this.nodes = paths.map(
      (own, index) =>
        new StormNode(index === 0 ? 'one' : 'two', own, databases, config, this.findings, options.program),
    );
    this.#client = new NodesClient(this.nodes, this.#ledger.random);
  }

  get findings(): Findings {
    return this.#ledger.findings;
  }

  static async start(options: ClusterStormOptions): Promise<ClusterStorm> {
    const { clusters } = options;
    const databases = await Promise.all(clusters.map((cluster) => cluster.create()));
    const paths = [];
    for (let node = 0; node < 2; node += 1) {
      const own = [];
      for (const cluster of clusters) own.push(await cluster.path());
      paths.push(own);
    }
    const storm = new ClusterStorm(options, databases, paths);
    await storm.migrate(options.program);
    for (const node of storm.nodes) await node.start();
    await storm.#createSubjects();
    return storm;
  }

  /** The environment of commands on its databases. */
  get environment(): NodeJS.ProcessEnv {
    return { FLEETPOST_STORE: JSON.stringify(this.nodes[0]?.config.store) };
  }

  /** Runs `fleetpost migrate` of that program. */
  async migrate(program = mainFile): Promise<void> {
    const { status, stderr } = await execute(process.execPath, [program, 'migrate'], this.environment);
    if (status !== 0) throw new Error(`fleetpost migrate: ${stderr}`);
  }

  /** One statement to the database of a shard. */
  async ask<T>(shard: number, text: string): Promise<T[]> {
    const [member] =
      (await this.#options.clusters[shard]?.ask<{ port: number }>(
        `SELECT current_setting('port')::integer AS port`,
      )) ?? [];
    return ask<T>(member?.port ?? 0, text, this.#databases[shard]);
  }

  /** Load, something breaks, all recovers by itself; then: is everything as it must be? */
  async round(
    fault = this.#ledger.random.pick(Object.keys(faults)) ?? '',
    happens = faults[fault],
  ): Promise<void> {
    const { findings, nodes } = this;
    this.#isLoaded = true;
    for (const watch of this.watches) watch.go(true);
    for (const probe of this.#probes) probe.start();
    const clients = this.#startClients();
    await sleep(this.#ledger.random.integer(1_500, 3_500));
    for (const probe of this.#probes) probe.begin();
    for (const watch of this.watches) watch.calm(false);
    await happens?.({ clusters: this.#options.clusters, nodes, random: this.#ledger.random });
    for (const probe of this.#probes) {
      this.outages.push({ fault, node: probe.node.name, milliseconds: await probe.end() });
    }
    findings.count(fault);
    await sleep(1_000);
    this.#isLoaded = false;
    await Promise.all(clients);
    for (const probe of this.#probes) await probe.stop();
    for (const cluster of this.#options.clusters) await cluster.healed();
    await this.#check();
    for (const watch of this.watches) watch.calm(true);
  }

  /** Ends what it has started, in order. */
  async finish(): Promise<void> {
    for (const watch of this.watches) await watch.stop();
    for (const node of this.nodes) await node.stop();
  }

  async #createSubjects(): Promise<void> {
    const { findings } = this;
    const [first] = this.nodes;
    if (first === undefined) throw new Error('there is no node');
    const fleet = await createFleet(first.server);
    await fleet.putSchema('datapoint', 'any', anyObject);
    await fleet.putSchema('message', 'any', anyObject);
    for (let index = 0; index < exclusiveDevices + hotMailboxes; index += 1) {
      const device = await fleet.createDevice();
      const isExclusive = index < exclusiveDevices;
      this.#subjects.push(new Subject(device, isExclusive, this.#ledger));
    }
    this.#relay = await Relay.create(first.server, this.#ledger);
    for (let index = 0; index < streams; index += 1) {
      const device = await fleet.createDevice();
      this.watches.push(
        new StreamWatch(device, index % this.nodes.length, this.nodes, this.#client, findings),
      );
    }
    const probed = await fleet.createDevice();
    for (const node of this.nodes) {
      this.#probes.push(new OutageWatch(node, probed, this.#ledger));
    }
    // The other nodes have heard of it all.
    await sleep(2_000);
  }

  #startClients(): Promise<void>[] {
    const acts = this.#relay?.clients(this.#client) ?? [];
    for (const subject of this.#subjects) {
      if (subject.isExclusive) acts.push(() => subject.act(this.#client));
      else
        for (let index = 0; index < clientsPerHotMailbox; index += 1) {
          acts.push(() => (index % 2 === 0 ? subject.enqueue(this.#client) : subject.settle(this.#client)));
        }
    }
    return acts.map((act) => this.#run(act));
  }

  async #run(act: () => Promise<void>): Promise<void> {
    while (this.#isLoaded) await act();
  }

  /** Checks, with nobody at work, what devices and operators see, and the logs themselves. */
  async #check(): Promise<void> {
    const { findings, nodes } = this;
    const client = new NodesClient(nodes, this.#ledger.random, patienceMs);
    for (const watch of this.watches) watch.go(false);
    await this.#quiet();
    for (const node of nodes) node.check();
    await this.#checkLogs();
    await Promise.all(this.#subjects.map((subject) => subject.resume(client)));
    for (const record of this.#ledger.records.unanswered()) {
      const subject = this.#subjects.find(({ device }) => device.deviceId === record.deviceId);
      await subject?.repeat(client, record);
    }
    await this.#relay?.check(client);
    const untilMs = performance.now() + announcedMsMax;
    while (!this.watches.every(({ isDone }) => isDone) && performance.now() < untilMs) await sleep(50);
    for (const { left } of this.watches) {
      findings.expect(left.length === 0, () => `mail was queued and its stream not told of it: ${left}`);
    }
    findings.count('not served at once after all was well again', client.refusals);
  }

  /** Settles when the databases do nothing any more of what was begun before: what nobody waits for is done late. */
  async #quiet(): Promise<void> {
    const sinceSeconds = Date.now() / 1_000;
    const busy = `SELECT 1 FROM pg_stat_activity
      WHERE application_name LIKE 'fleetpost%' AND state <> 'idle' AND xact_start < to_timestamp(${sinceSeconds})`;
    for (const cluster of this.#options.clusters) {
      while ((await cluster.ask(busy)).length > 0) await sleep(50);
    }
  }

  async #checkLogs(): Promise<void> {
    for (const shard of this.#databases.keys()) {
      const from = this.#ledger.records.positionOf(shard);
      const text = `SELECT position::integer, kind, schema, device, payload FROM record
        WHERE position >= ${from} ORDER BY position`;
      this.#ledger.records.look(shard, await this.ask<LoggedRecord>(shard, text));
    }
    this.#ledger.records.close();
  }
}
