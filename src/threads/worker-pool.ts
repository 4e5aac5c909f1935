import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { TlsFiles } from '../core/config/tls.ts';
import { OperatorError } from '../core/errors.ts';
import type { DeviceKey } from '../core/identity.ts';
import type { Log } from '../core/telemetry/log.ts';
import type { TakenSpans } from '../core/telemetry/trace.ts';
import { WorkerMetrics } from '../core/telemetry/worker-metrics.ts';
import type { ClaimedDevice, ClaimRequest } from '../declarations/claim-token.ts';
import type { DisabledSchema, FleetSnapshot, FleetUpdate } from '../declarations/fleet.ts';
import { Lockouts } from '../device-api/auth/lockouts.ts';
import { AddressCensus, ConnectionCounts } from '../device-api/limits/connection-gate.ts';
import type { PulseCounts } from '../device-api/limits/fleet-pulse.ts';
import type { Talker } from '../device-api/limits/top-talkers.ts';
import { routeNames } from '../device-api/server/server.ts';
import type { AppDescriptor } from '../device-api/uws/uws.ts';
import { DeviceMarks } from '../domain/devices/device-marks.ts';
import type { LockoutList } from '../domain/devices/lockout.ts';
import type { SeenFleet, SeenRequests } from '../domain/devices/refusals.ts';
import { WatchedDevices } from '../domain/devices/watched-devices.ts';
import type { Hold } from '../domain/hold.ts';
import type { Completion } from '../domain/write.ts';
import { Acceptor } from './acceptor.ts';
import { connectionCapacity, logCapacity } from './capacity.ts';
import type { ThreadConfig, ThreadSettings } from './config.ts';
import { openLmdbShards } from './lmdb-shards.ts';
import type { MainShards } from './main-shards.ts';
import { Channel, meshOfPorts } from './relay/channel.ts';
import type { Call, Notice, SharedCounters, WorkerReady, WorkerStart } from './relay/messages.ts';
import { allocateCounters, counterCellOf } from './shared-counters.ts';
import { EventLoopWatchdog, endProcess, mainThread, type Stalls, stallsOf } from './watchdog.ts';

const talkersPerWorker = 64;
const talkersMax = 20;

export interface WorkerPoolOptions {
  config: ThreadConfig;
  /** LMDB: one per worker. */
  shardFolders: readonly string[];
  /** PostgreSQL: the databases opened by the main thread; then there are `config.shards` workers. */
  databases: MainShards | undefined;
  tls: TlsFiles;
  fleets: readonly FleetSnapshot[];
  hold: Hold;
  /** Handles a device that registers itself, at any worker. */
  claim(claim: ClaimRequest): Promise<ClaimedDevice>;
  /** Called when a worker stops validating against a schema. */
  onDisabledSchema(schema: DisabledSchema): void;
  log: Log;
}

interface Member {
  worker: Worker;
  channel: Channel;
  /** Descriptor of the app that new connections go to. */
  descriptor: AppDescriptor;
  exited: Promise<void>;
}

/** Worker threads, and the acceptor that deals connections to them, as the main thread has them. */
export class WorkerPool {
  readonly shards: MainShards;
  readonly metrics: readonly WorkerMetrics[];
  readonly connections: ConnectionCounts;
  readonly lockouts: LockoutList;
  readonly watched: WatchedDevices;
  readonly #counters: SharedCounters;
  readonly #members: readonly Member[];
  readonly #config: ThreadConfig;
  readonly #acceptor: Acceptor;
  readonly #log: Log;
  readonly #census: AddressCensus;
  #watchdog: EventLoopWatchdog | undefined;
  #stopping = false;

  private constructor(
    options: WorkerPoolOptions,
    counters: SharedCounters,
    acceptor: Acceptor,
    members: readonly Member[],
    metrics: readonly WorkerMetrics[],
  ) {
    const { config, log } = options;
    this.#config = config;
    this.#log = log;
    this.#counters = counters;
    this.#members = members;
    this.metrics = metrics;
    this.connections = new ConnectionCounts(counters.connections);
    this.lockouts = new Lockouts(counters.lockouts, config.settings);
    this.watched = new WatchedDevices(new DeviceMarks(counters.watched));
    this.#census = new AddressCensus(this.connections, config.connectionsPerAddressMax, (addresses) => {
      for (const { channel } of members) channel.notify({ type: 'fullAddresses', addresses });
    });
    const channels = members.map(({ channel }) => channel);
    this.shards = options.databases ?? openLmdbShards(options.shardFolders, channels, config, counters);
    this.#acceptor = acceptor;
    for (const { worker } of members) {
      worker.on('exit', () => {
        if (!this.#stopping) endProcess(log, 'a worker thread ended');
      });
    }
  }

  static async start(options: WorkerPoolOptions): Promise<WorkerPool> {
    const { config, shardFolders, databases } = options;
    const workers = databases === undefined ? shardFolders.length : config.shards;
    const logBytesByDisk = logCapacity(shardFolders, config, options.log);
    const counters = allocateCounters(workers);
    // Workers on databases do not talk to each other.
    const ports = databases === undefined ? meshOfPorts(workers) : [];
    const buffers = Array.from({ length: workers }, () => WorkerMetrics.allocate(routeNames));
    const acceptor = new Acceptor({ config, tls: options.tls, workers, counters, log: options.log });
    const members = await Promise.all(
      buffers.map((metrics, index) => {
        const main = new MessageChannel();
        const peerPorts = ports[index] ?? [];
        const start: WorkerStart = {
          index,
          workers,
          config,
          shardFolders,
          logBytesByDisk,
          tls: options.tls,
          fleets: options.fleets,
          counters,
          hold: options.hold.memory,
          metrics,
          mainPort: main.port1,
          peerPorts,
        };
        return startMember(start, main.port2, options);
      }),
    );
    await Promise.all(members.map(({ descriptor }) => acceptor.deal(descriptor)));
    return new WorkerPool(
      options,
      counters,
      acceptor,
      members,
      buffers.map((buffer) => new WorkerMetrics(routeNames, buffer)),
    );
  }

  /** Opens the port. Answers the one that was taken. @throws OperatorError when it cannot be had. */
  async listen(): Promise<number> {
    this.connections.max = connectionCapacity(this.#config.connectionsMax);
    const port = await this.#acceptor.listen(this.#config.listen);
    this.#census.start(port);
    return port;
  }

  /** Settles when every worker applies it. */
  async updateFleet(update: FleetUpdate): Promise<void> {
    await Promise.all(this.#members.map(({ channel }) => channel.ask({ type: 'updateFleet', update })));
  }

  /** Settles when every thread applies the values. */
  async configure(values: Partial<ThreadSettings>): Promise<void> {
    const workers = this.#members.map(({ channel }) => channel.ask({ type: 'configure', values }));
    await Promise.all([...workers, this.#acceptor.configure(values)]);
  }

  /**
   * Serves new connections with these files; open ones continue as they are. Each worker opens a second app, whose
   * context makes the handshake, and no worker and no listener is replaced.
   * @throws OperatorError when the TLS library rejects them: then the old ones stay in use.
   */
  async renewCertificate(tls: TlsFiles): Promise<void> {
    for (const member of this.#members) {
      const answer = await member.channel.ask({ type: 'renewCertificate', tls }).catch(() => {
        throw new OperatorError(`The TLS library rejects ${tls.certFile} with ${tls.keyFile}.`);
      });
      if (this.#stopping) return;
      const before = member.descriptor;
      member.descriptor = answer as AppDescriptor;
      await this.#acceptor.deal(member.descriptor);
      await this.#acceptor.stopDealing(before);
    }
  }

  /** Has the threads watch each other: once the server is ready, since a start may take long. */
  async watchStalls(): Promise<void> {
    this.#watchdog = new EventLoopWatchdog({
      heartbeats: this.#counters.heartbeats,
      thread: mainThread(this.#members.length),
      watched: [],
      settings: this.#config.settings,
      log: this.#log,
    });
    await this.#acceptor.watchThreads();
  }

  /** Stalls of every thread, by name. */
  stalls(): { thread: string; stalls: Stalls }[] {
    const names = [...this.#members.map((_, index) => String(index)), 'main', 'acceptor'];
    return names.map((thread, index) => ({ thread, stalls: stallsOf(this.#counters.heartbeats, index) }));
  }

  /** Takes the requests of each fleet since the last call, of all workers. */
  async takePulses(): Promise<[fleetId: string, counts: PulseCounts][]> {
    const answers = this.#members.map(({ channel }) => channel.ask({ type: 'takePulses' }));
    return ((await Promise.all(answers)) as [string, PulseCounts][][]).flat();
  }

  /** Top devices by requests of the last minute or less, of one fleet or of all; one device may use several workers. */
  async talkers(fleetId?: string): Promise<Talker[]> {
    const answers = this.#members.map(({ channel }) =>
      channel.ask({ type: 'talkers', limit: talkersPerWorker, fleetId }),
    );
    const sums = new Map<DeviceKey, number>();
    for (const talker of ((await Promise.all(answers)) as Talker[][]).flat()) {
      sums.set(talker.device, (sums.get(talker.device) ?? 0) + talker.requestsPerSecond);
    }
    return [...sums]
      .map(([device, sum]) => ({ device, requestsPerSecond: Number(sum.toPrecision(2)) }))
      .sort((a, b) => b.requestsPerSecond - a.requestsPerSecond)
      .slice(0, talkersMax);
  }

  /** Collects what each worker has refused to the device, and accepted since. */
  async refusalsOf(device: DeviceKey): Promise<SeenRequests[]> {
    const answers = this.#members.map(({ channel }) => channel.ask({ type: 'refusals', device }));
    return (await Promise.all(answers)) as SeenRequests[];
  }

  /** Collects what each worker has refused to the devices of a fleet since then. */
  async refusalsOfFleet(fleetId: string, sinceMs: number): Promise<SeenFleet[]> {
    const answers = this.#members.map(({ channel }) =>
      channel.ask({ type: 'refusalsOfFleet', fleetId, sinceMs }),
    );
    return (await Promise.all(answers)) as SeenFleet[];
  }

  /** Takes the spans of all workers since the last call. */
  async takeSpans(): Promise<TakenSpans> {
    const answers = this.#members.map(({ channel }) => channel.ask({ type: 'takeSpans' }));
    const taken = (await Promise.all(answers)) as TakenSpans[];
    const dropped = taken.reduce((sum, one) => sum + one.dropped, 0);
    return { spans: taken.flatMap(({ spans }) => spans), dropped };
  }

  /** Writes in flight to a shard, or from a worker to databases. */
  queueDepth(shard: number): number {
    return Atomics.load(counterCellOf(this.#counters.depths, shard), 0);
  }

  /** Stops accepting, lets requests in flight finish, ends streams, and flushes everything to disk. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#census.stop();
    await this.#acceptor.stopListening();
    await Promise.all(this.#members.map(({ descriptor }) => this.#acceptor.stopDealing(descriptor)));
    await Promise.all(this.#members.map(({ channel }) => channel.ask({ type: 'drain' })));
    this.#watchdog?.close();
    await Promise.all(this.#members.map(({ channel }) => channel.ask({ type: 'close' })));
    await Promise.all(this.#members.map(({ exited }) => exited));
    for (const { channel } of this.#members) channel.close();
    await this.#acceptor.close();
    await this.shards.close();
  }
}

/**
 * A young generation of 4 MiB instead of 16 (a worker's new objects take three of them in all) keeps the garbage of
 * requests in the processor's caches: 0.96 times the CPU of a heartbeat, and 0.8 times that of a datapoint where 8
 * workers share two cores.
 */
const youngGenerationMegabytes = 12;

async function startMember(
  start: WorkerStart,
  port: MessagePort,
  { claim, onDisabledSchema, log }: Pick<WorkerPoolOptions, 'claim' | 'onDisabledSchema' | 'log'>,
): Promise<Member> {
  const worker = new Worker(new URL('./worker.js', import.meta.url), {
    workerData: start,
    resourceLimits: { maxYoungGenerationSizeMb: youngGenerationMegabytes },
    transferList: [start.mainPort, ...start.peerPorts.filter((peer) => peer !== undefined)],
  });
  const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  // A dead worker takes its shard with it, and the library ends the process at the next connection it deals there:
  // better at once.
  worker.on('error', (error) => endProcess(log, 'a worker thread failed', error));
  const { descriptor } = await new Promise<WorkerReady>((resolve) => worker.once('message', resolve));
  const onCall = (call: Call, { resolve, reject }: Completion<unknown>): void => {
    if (call.type === 'claim') claim(call.claim).then(resolve, reject);
    else reject(new Error('the main thread owns no shard'));
  };
  const onNotice = (notice: Notice): void => {
    if (notice.type === 'schemaDisabled') onDisabledSchema(notice.schema);
  };
  return { worker, channel: new Channel(port, onCall, onNotice), descriptor, exited };
}
