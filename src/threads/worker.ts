import { parentPort, workerData } from 'node:worker_threads';
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
import { RequestRates } from '../device-api/limits/request-rates.ts';
import { TopTalkers } from '../device-api/limits/top-talkers.ts';
import { DeviceServer, routeNames } from '../device-api/server/server.ts';
import type { Completion } from '../domain/write.ts';
import type { ThreadConfig } from './config.ts';
import { openEmbeddedShards } from './embedded-shards.ts';
import { Channel } from './relay/channel.ts';
import type { Call, WorkerReady, WorkerStart } from './relay/messages.ts';
import { EventLoopWatchdog } from './watchdog.ts';

/** One worker thread: a front end, and on LMDB the shard of the same number. It wires the rooms together. */
const start = workerData as WorkerStart;
const { config, counters, index } = start;
const log = createLog(config.logLevel, { worker: index });
const metrics = new WorkerMetrics(routeNames, start.metrics);
const fleets = new Fleets(start.fleets, { limits: config, onDisabled: tellOfDisabled });

if (parentPort === null) throw new Error('this file runs as a worker only');
const parent = parentPort;

const options = { start, config, fleets, metrics, log };
const { store } = config;
// Loaded where they are needed: a worker on LMDB has no use for their library.
const held =
  store.engine === 'lmdb'
    ? openEmbeddedShards(options)
    : await (await import('./worker-databases.ts')).openWorkerDatabases(store, options);
const { shards } = held;

function onCall(call: Call, completion: Completion<unknown>, channel: Channel): void {
  switch (call.type) {
    case 'write':
    case 'subscribe':
    case 'presence':
      held.serve(call, completion, channel);
      break;
    default:
      answer(call).then(completion.resolve, completion.reject);
  }
}

async function answer(call: Call): Promise<unknown> {
  switch (call.type) {
    case 'putFleet':
      return fleets.put(call.snapshot);
    case 'configure':
      return configure(call.values);
    case 'renewCertificate':
      return server.renewCertificate(call.tls);
    case 'takeSpans':
      return spans?.take() ?? { spans: [], dropped: 0 };
    case 'talkers':
      return talkers.top(call.limit);
    case 'drain':
      return drain();
    case 'close':
      return close();
    default:
      throw new Error(`${call.type} is not asked of a worker`);
  }
}

const mainChannel = new Channel(start.mainPort, onCall, (notice, channel) => {
  if (notice.type === 'fullAddresses') connections.setFull(notice.addresses);
  else held.notice(notice, channel);
});
const activity = new ActivityNotes(shards, config.activityFlushSeconds, log);
const streams = new EventStreams(config, metrics);
const known = new DeviceCache(config.cachedDevicesMax);
const connections = new ConnectionGate(new ConnectionCounts(counters.connections));
const lockouts = new Lockouts(counters.lockouts, config);
const rates = new RequestRates(counters.rates);
const anonymous = new AnonymousRate(config, rates, start.workers);
const claims = {
  claim: (claim: ClaimRequest) => mainChannel.ask({ type: 'claim', claim }) as Promise<ClaimedDevice>,
};
const talkers = new TopTalkers();
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
    anonymous,
    activity,
    streams,
    claims,
    talkers,
    spans,
    metrics,
    beat: () => stalls.beat(),
    log,
  },
  start.tls,
);

/** All threads are to know of it. */
function tellOfDisabled(schema: DisabledSchema): void {
  logDisabled(log, schema);
  mainChannel.tell({ type: 'schemaDisabled', schema });
}

/** Where a value can change, it is read off `config` each time. */
function configure(values: Partial<ThreadConfig>): void {
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
  await held.close();
  // The answer to this call has to leave before the port is closed.
  setImmediate(() => {
    mainChannel.close();
    parent.close();
  });
}

const mainThread = start.workers;
const stalls = new EventLoopWatchdog({
  beats: counters.beats,
  thread: index,
  watched: index === 0 ? [{ name: 'the main thread', thread: mainThread }] : [],
  limits: config,
  log,
});

// From here on: a start that fails ends the process.
outliveRejections(log);
// Holds the thread's event loop open: an app that is only dealt connections does not.
parent.on('message', () => {});
parent.postMessage({ descriptor: server.descriptor } satisfies WorkerReady);
