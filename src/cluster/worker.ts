import { parentPort, workerData } from 'node:worker_threads';
import type { Config } from '../core/config.ts';
import { ApiError } from '../core/errors.ts';
import { createLog } from '../core/log.ts';
import { WorkerMetrics } from '../core/metrics.ts';
import { SpanBuffer } from '../core/trace.ts';
import { ActivityNotes } from '../http/activity.ts';
import { ConnectionCounts, ConnectionGate } from '../http/connection-gate.ts';
import { EventStreams } from '../http/event-streams.ts';
import { KnownDevices } from '../http/known-device.ts';
import { Lockouts } from '../http/lockouts.ts';
import { RequestRates } from '../http/request-rates.ts';
import { DeviceServer, routeNames } from '../http/server.ts';
import { Talkers } from '../http/talkers.ts';
import type { Claim, ClaimedDevice } from '../registry/claim-token.ts';
import { Fleets } from '../registry/fleet.ts';
import type { OwnerLink } from '../shard/lmdb-shard.ts';
import { ShardOwner } from '../shard/owner.ts';
import { ShardReader } from '../shard/reader.ts';
import type { Completion } from '../shard/write.ts';
import { Channel } from './channel.ts';
import { Crossing } from './crossing.ts';
import type { Call, Notice, WorkerReady, WorkerStart } from './messages.ts';
import { RemoteOwner, RemoteStreams } from './remote-owner.ts';
import { retentionOf } from './retention.ts';
import { cellOf, openShardEnvironment, Shards, versionsOf } from './shards.ts';
import { StallWatch } from './stalls.ts';

/** One worker thread: a front end and the shard of the same number. The only place that wires rooms together. */
const start = workerData as WorkerStart;
const { config, counters, index, shardFolders } = start;
const log = createLog(config.logLevel, { worker: index });
const metrics = new WorkerMetrics(routeNames, start.metrics);
const fleets = new Fleets(start.fleets);

const environments = shardFolders.map((path, shard) =>
  openShardEnvironment(path, shard, shardFolders.length, config, counters),
);
const ownEnvironment = environments[index];
if (ownEnvironment === undefined || parentPort === null) throw new Error('this file runs as a worker only');
const parent = parentPort;

const versions = versionsOf(counters, index);
const depth = cellOf(counters.depths, index);
const reader = new ShardReader(ownEnvironment, versions);
const others = environments
  .map((environment, shard) => new ShardReader(environment, versionsOf(counters, shard)))
  .filter((_, shard) => shard !== index);
const retention = retentionOf(fleets, others, config);
const owner = new ShardOwner(ownEnvironment, reader, versions, depth, config, retention, metrics, log, () =>
  crossing.drain(),
);
const crossing = new Crossing({
  index,
  workers: shardFolders.length,
  memory: counters.crossing,
  gatherMilliseconds: config.gatherMilliseconds,
  depth,
  onWrite: (write, completion) => owner.write(write, completion),
});
const remoteStreams = new Map<Channel, RemoteStreams>();
const remoteOwners = new Map<Channel, RemoteOwner>();

function onCall(call: Call, completion: Completion<unknown>, channel: Channel): void {
  if (call.type === 'write') owner.write(call.write, completion);
  else answer(call, channel).then(completion.resolve, completion.reject);
}

async function answer(call: Exclude<Call, { type: 'write' }>, channel: Channel): Promise<unknown> {
  switch (call.type) {
    case 'subscribe':
      return remoteStreams.get(channel)?.subscribe(call.stream, call.device);
    case 'presence':
      return (owner.presence[call.method] as (...given: unknown[]) => unknown).apply(
        owner.presence,
        call.given,
      );
    case 'putFleet':
      return fleets.put(call.snapshot);
    case 'configure':
      return configure(call.values);
    case 'renewCertificate':
      return server.renewCertificate(call.tls);
    case 'takeSpans':
      return spans?.take() ?? { spans: [], dropped: 0 };
    case 'talkers':
      return talkers.loudest(call.limit);
    case 'drain':
      return drain();
    case 'close':
      return close();
    case 'claim':
      throw new Error('the main thread alone takes claims');
  }
}

function onNotice(notice: Notice, channel: Channel): void {
  switch (notice.type) {
    case 'wake':
      crossing.look();
      break;
    case 'answered':
      crossing.complete(notice.call, notice.answer);
      break;
    case 'refused':
      crossing.complete(notice.call, new ApiError(notice.code, notice.options));
      break;
    case 'fullAddresses':
      connections.setFull(notice.addresses);
      break;
    case 'unsubscribe':
      remoteStreams.get(channel)?.unsubscribe(notice.stream);
      break;
    default:
      remoteOwners.get(channel)?.receive(notice);
  }
}

const mainChannel = new Channel(start.mainPort, onCall, onNotice);
const owners = start.peerPorts.map((port, peer): OwnerLink => {
  if (port === undefined) return owner;
  const channel = new Channel(port, onCall, onNotice);
  crossing.connect(peer, channel);
  const remote = new RemoteOwner(channel, (write, completion) => crossing.send(peer, write, completion));
  remoteOwners.set(channel, remote);
  remoteStreams.set(channel, new RemoteStreams(owner, channel));
  return remote;
});

const shards = new Shards(environments, owners, config, counters);
const activity = new ActivityNotes(shards, config.activityFlushSeconds, log);
const streams = new EventStreams(config, metrics);
const known = new KnownDevices(config.knownDevicesMax);
const connections = new ConnectionGate(new ConnectionCounts(counters.connections));
const lockouts = new Lockouts(counters.lockouts, config);
const rates = new RequestRates(counters.rates);
const claims = {
  claim: (claim: Claim) => mainChannel.ask({ type: 'claim', claim }) as Promise<ClaimedDevice>,
};
const talkers = new Talkers();
const spans = config.traceUrl === '' ? undefined : new SpanBuffer();
const server = new DeviceServer(
  {
    config,
    fleets,
    shards,
    known,
    connections,
    lockouts,
    rates,
    activity,
    streams,
    claims,
    talkers,
    spans,
    metrics,
    log,
  },
  start.tls,
);

/** Where a value can change, it is read off `config` each time. */
function configure(values: Partial<Config>): void {
  Object.assign(config, values);
  log.level = config.logLevel;
}

/** No connection is dealt here any more. Other workers may still write to this shard. */
async function drain(): Promise<void> {
  streams.endAll();
  await server.close(config.shutdownSeconds);
  await activity.close();
}

/** Every worker has drained: nothing will be written any more. */
async function close(): Promise<void> {
  stalls.close();
  crossing.close();
  await owner.close();
  await shards.close();
  // The answer to this call has to leave before the ports are closed.
  setImmediate(() => {
    for (const channel of [mainChannel, ...remoteOwners.keys()]) channel.close();
    parent.close();
  });
}

const mainThread = shardFolders.length;
const stalls = new StallWatch({
  beats: counters.beats,
  thread: index,
  watched: index === 0 ? [{ name: 'the main thread', thread: mainThread }] : [],
  limits: config,
  log,
});

// Holds the thread's event loop open: an app that is only dealt connections does not.
parent.on('message', () => {});
parent.postMessage({ descriptor: server.descriptor } satisfies WorkerReady);
