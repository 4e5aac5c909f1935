import { parentPort, workerData } from 'node:worker_threads';
import { LiveSettings } from '../core/config/settings.ts';
import { ConnectionRate } from '../core/limits/connection-rate.ts';
import { createLog } from '../core/telemetry/log.ts';
import { outliveRejections } from '../core/telemetry/rejections.ts';
import { SpanBuffer } from '../core/telemetry/trace.ts';
import { WorkerMetrics } from '../core/telemetry/worker-metrics.ts';
import type { ClaimedDevice, ClaimRequest } from '../declarations/claim-token.ts';
import { logDisabled } from '../declarations/disabled-schemas.ts';
import { type DisabledSchema, Fleets } from '../declarations/fleet.ts';
import { ActivityNotes } from '../device-api/auth/activity.ts';
import { AnonymousRate } from '../device-api/auth/anonymous-rate.ts';
import { DeviceCache } from '../device-api/auth/cached-device.ts';
import { Lockouts } from '../device-api/auth/lockouts.ts';
import { EventStreams } from '../device-api/events/event-streams.ts';
import { ConnectionCounts, ConnectionGate } from '../device-api/limits/connection-gate.ts';
import { FleetPulses } from '../device-api/limits/fleet-pulse.ts';
import { RequestRates } from '../device-api/limits/request-rates.ts';
import { TopTalkers } from '../device-api/limits/top-talkers.ts';
import { DeviceServer, routeNames } from '../device-api/server/server.ts';
import { DeviceMarks } from '../domain/devices/device-marks.ts';
import { Refusals } from '../domain/devices/refusals.ts';
import { Hold } from '../domain/hold.ts';
import type { Completion } from '../domain/write.ts';
import type { ThreadConfig, ThreadSettings } from './config.ts';
import { Channel } from './relay/channel.ts';
import type { Call, WorkerReady, WorkerStart } from './relay/messages.ts';
import { acceptorThread, EventLoopWatchdog } from './watchdog.ts';
import { openWorkerLmdbShards } from './worker-lmdb-shards.ts';

/** One worker thread: a front end, and on LMDB the shard of the same number. */
const start = workerData as WorkerStart;
const { counters, index } = start;
const settings = new LiveSettings(start.config.settings.current);
const config: ThreadConfig = { ...start.config, settings };
const log = createLog(settings.current.logLevel, { worker: index });
const metrics = new WorkerMetrics(routeNames, start.metrics);
const fleets = new Fleets(start.fleets, { settings, defersCompiling: true, onDisabled: reportDisabled });

if (parentPort === null) throw new Error('this file runs as a worker only');
const parent = parentPort;

const options = { start, config, fleets, hold: new Hold(start.hold), metrics, log };
const { store } = config;
// Loaded on demand: a worker on LMDB has no use for the PostgreSQL library.
const shardAccess =
  store.engine === 'lmdb'
    ? openWorkerLmdbShards(options)
    : await (await import('./worker-postgres-shards.ts')).openWorkerPostgresShards(store, options);
const { shards } = shardAccess;

function onCall(call: Call, completion: Completion<unknown>, channel: Channel): void {
  switch (call.type) {
    case 'write':
    case 'subscribe':
    case 'presence':
      shardAccess.serve(call, completion, channel);
      break;
    default:
      answer(call).then(completion.resolve, completion.reject);
  }
}

async function answer(call: Call): Promise<unknown> {
  switch (call.type) {
    case 'updateFleet':
      return fleets.update(call.update);
    case 'configure':
      return configure(call.values);
    case 'renewCertificate':
      return server.renewCertificate(call.tls);
    case 'takeSpans':
      return spans?.take() ?? { spans: [], dropped: 0 };
    case 'talkers':
      return topTalkers.top(call.limit, call.fleetId);
    case 'takePulses':
      return pulses.take();
    case 'refusals':
      return refusals.of(call.device);
    case 'refusalsOfFleet':
      return refusals.ofFleet(call.fleetId, call.sinceMs);
    case 'drain':
      return drain();
    case 'close':
      return close();
    default:
      throw new Error(`a worker does not serve ${call.type}`);
  }
}

const mainChannel = new Channel(start.mainPort, onCall, (notice, channel) => {
  if (notice.type === 'fullAddresses') connections.setFull(notice.addresses);
  else shardAccess.notice(notice, channel);
});
const activity = new ActivityNotes({
  shards,
  flushSeconds: config.activityFlushSeconds,
  watched: new DeviceMarks(counters.watched),
  log,
});
const streams = new EventStreams(config, metrics);
const deviceCache = new DeviceCache(config.cachedDevicesMax);
const connections = new ConnectionGate(
  new ConnectionCounts(counters.connections),
  new ConnectionRate({
    limit: 'connectionsPerSecondPerAddressMax',
    perSecondMax: () => settings.current.connectionsPerSecondPerAddressMax,
    log,
  }),
);
const lockouts = new Lockouts(counters.lockouts, settings);
const rates = new RequestRates(counters.rates);
const anonymous = new AnonymousRate(settings, rates, start.workers);
const claims = {
  claim: (claim: ClaimRequest) => mainChannel.ask({ type: 'claim', claim }) as Promise<ClaimedDevice>,
};
const topTalkers = new TopTalkers();
const pulses = new FleetPulses();
const refusals = new Refusals(new DeviceMarks(counters.refused));
const spans = config.traceUrl === '' ? undefined : new SpanBuffer();
const server = new DeviceServer(
  {
    config,
    fleets,
    shards,
    deviceCache,
    connections,
    lockouts,
    rates,
    anonymous,
    activity,
    streams,
    claims,
    topTalkers,
    pulses,
    refusals,
    spans,
    metrics,
    heartbeat: () => stalls.beat(),
    log,
  },
  start.tls,
);

/** Disables the schema on all threads. */
function reportDisabled(schema: DisabledSchema): void {
  logDisabled(log, schema);
  mainChannel.notify({ type: 'schemaDisabled', schema });
}

function configure(values: Partial<ThreadSettings>): void {
  settings.change(values);
  log.level = settings.current.logLevel;
}

/** Called when no connection is dealt here any more. Other workers may still write to this shard. */
async function drain(): Promise<void> {
  streams.endAll();
  await server.close(config.settings.current.shutdownSeconds);
  await activity.close();
}

/** Called when every worker has drained: nothing is written any more. */
async function close(): Promise<void> {
  stalls.close();
  await shardAccess.close();
  // Lets the answer to this call leave before the port is closed.
  setImmediate(() => {
    mainChannel.close();
    parent.close();
  });
}

const stalls = new EventLoopWatchdog({
  heartbeats: counters.heartbeats,
  thread: index,
  // The acceptor watches all others.
  watched: index === 0 ? [{ name: 'the acceptor', thread: acceptorThread(start.workers) }] : [],
  settings,
  log,
});

// Only from here on, so that a failed start ends the process.
outliveRejections(log);
// Keeps the event loop alive: an app that is only dealt connections does not.
parent.on('message', () => {});
parent.postMessage({ descriptor: server.descriptor } satisfies WorkerReady);
