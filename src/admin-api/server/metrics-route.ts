import { Counter, collectDefaultMetrics, type Registry } from 'prom-client';
import { Type } from 'typebox';
import { SingleFlight } from '../../core/async.ts';
import { programVersion } from '../../core/telemetry/version.ts';
import { batchBounds, latencyBounds, type WorkerMetrics } from '../../core/telemetry/worker-metrics.ts';
import { addActionMetrics } from '../../features/actions/metrics.ts';
import { addBackupMetrics } from '../../features/backups/metrics.ts';
import { addBroadcastMetrics } from '../../features/broadcasts/metrics.ts';
import { addConsumerMetrics } from '../../features/consumers/metrics.ts';
import { addForwarderMetrics } from '../../features/forwarders/metrics.ts';
import type { AdminApp, AdminContext, Handler } from '../request/context.ts';
import { MetricSet } from '../request/metric-set.ts';
import type { Admission } from './admission.ts';

function addDeviceApiMetrics(set: MetricSet, { metrics, connections }: AdminContext): void {
  new Counter({
    name: 'fleetpost_requests_total',
    help: 'Requests answered on the device API.',
    labelNames: ['route', 'status'],
    registers: [set.registry],
    collect() {
      this.reset();
      for (const worker of metrics) {
        for (const { route, status, count } of worker.requests()) this.inc({ route, status }, count);
      }
    },
  });
  set.histograms(
    'fleetpost_request_duration_seconds',
    'Time from the head of a request to its answer.',
    latencyBounds,
    'worker',
    () => metrics.map((worker) => worker.latency()),
  );
  set.gauge(
    'fleetpost_connections_open',
    'Open connections of the device API, including those in their TLS handshake.',
    () => connections.open,
  );
  set.counter(
    'fleetpost_connections_refused_total',
    'Connections closed on arrival: connectionsMax, connectionsPerAddressMax.',
    () => connections.refused,
  );
  set.gauges('fleetpost_streams_open', 'Open event streams.', 'worker', () =>
    metrics.map(({ openStreams }, worker) => [worker, openStreams]),
  );
}

function addShardMetrics(set: MetricSet, context: AdminContext): void {
  const { metrics, queueDepth, shards, connectedOf, devicesOf, activity } = context;
  const ofShards = (name: string, help: string, read: (shard: number) => number): void =>
    set.gauges(name, help, 'shard', () => shards.all.map((_, shard) => [shard, read(shard)]));
  const ofOwners = (name: string, help: string, read: (owner: WorkerMetrics) => number): void =>
    set.counters(name, help, 'shard', () => metrics.map((owner, shard) => [shard, read(owner)]));

  ofShards(
    'fleetpost_devices_connected',
    'Devices of the shard with open event streams, on any worker.',
    connectedOf,
  );
  ofShards('fleetpost_devices', 'Devices of all fleets.', devicesOf);
  const ofStores = (name: string, help: string, key: keyof ReturnType<typeof activity.sizes>[number]): void =>
    set.gauges(name, help, 'shard', () => activity.sizes().map((sizes, shard) => [shard, sizes[key]]));
  ofStores('fleetpost_shard_bytes', 'Size of a shard in its store, its log included.', 'bytes');
  ofStores('fleetpost_log_bytes', 'Size of the log of a shard.', 'logBytes');
  ofStores('fleetpost_mails_waiting', 'Mails in mailboxes.', 'mails');
  set.gauges('fleetpost_shard_queue_depth', 'Writes in flight.', 'shard', () =>
    metrics.map((_, shard) => [shard, queueDepth(shard)]),
  );
  ofOwners('fleetpost_commits_total', 'Transactions committed.', ({ commits }) => commits);
  ofOwners(
    'fleetpost_commit_failures_total',
    'Transactions rolled back.',
    ({ failedCommits }) => failedCommits,
  );
  ofOwners('fleetpost_committed_writes_total', 'Writes committed.', ({ committedWrites }) => committedWrites);
  ofOwners(
    'fleetpost_writes_refused_total',
    'Writes answered 503 because the disk, the shard or its store was full.',
    ({ refusedWrites }) => refusedWrites,
  );
  ofOwners(
    'fleetpost_dead_letters_dropped_total',
    'Dead letters dropped for newer ones: deadLettersPerFleetMax.',
    ({ droppedLetters }) => droppedLetters,
  );
  set.histograms('fleetpost_commit_batch_size', 'Writes in one transaction.', batchBounds, 'shard', () =>
    metrics.map((owner) => owner.batchSizes()),
  );
}

/** Adds what alerts begin with: whether the server is ready, and what it is soon short of. */
function addHealthMetrics(set: MetricSet, { notReady, activity, lockouts }: AdminContext): void {
  const version = programVersion();
  set.gauges('fleetpost_build_info', 'Always 1, with the version of the program.', 'version', () => [
    [version, 1],
  ]);
  set.gauges(
    'fleetpost_ready',
    'As /readyz: 1 with the reason none, or 0 for each reason why devices are not fully served.',
    'reason',
    () => {
      const reasons = notReady().map(({ reason }) => [reason, 0] as const);
      return reasons.length === 0 ? [['none', 1]] : reasons;
    },
  );
  set.gauges(
    'fleetpost_disk_free_bytes',
    'Free space on a disk of the server. None on databases, or where diskFreeBytesMin is 0.',
    'disk',
    () => {
      const bytes = activity.diskFreeBytes();
      return bytes === undefined ? [] : [['data', bytes]];
    },
  );
  set.gauge(
    'fleetpost_lockouts',
    'Devices locked out at an address after wrong secrets, and addresses after wrong claims.',
    () => lockouts.count,
  );
}

/** Counts of what is under way at the admin API. */
type Admitted = Pick<Admission, 'counts'>;

function addAdmissionMetrics(set: MetricSet, admission: Admitted): void {
  set.gauge(
    'fleetpost_admin_requests_under_way',
    'Requests of the admin API under way, without streams.',
    () => admission.counts.underWay,
  );
  set.gauge(
    'fleetpost_admin_requests_waiting',
    'Requests of the admin API that wait for their turn.',
    () => admission.counts.waiting,
  );
  set.counter(
    'fleetpost_admin_requests_refused_total',
    'Requests of the admin API answered 503 before they began: adminQueueMax, adminQueueSeconds.',
    () => admission.counts.refused,
  );
}

function addServerMetrics(set: MetricSet, { audit, hold, registry, stalls }: AdminContext): void {
  set.gauge(
    'fleetpost_held',
    'Whether forwarders, actions, broadcasts and delayed mail wait for a release.',
    () => Number(hold.isHeld),
  );
  set.counter(
    'fleetpost_audit_entries_lost_total',
    'Entries of the audit log that could not be written.',
    () => audit.lost,
  );
  set.gauge(
    'fleetpost_schemas_disabled',
    'Schemas disabled because a check took too long or they cannot be compiled.',
    () => {
      const schemas = registry.snapshots().flatMap((fleet) => fleet.schemas);
      return schemas.filter(({ disabled }) => disabled !== undefined).length;
    },
  );
  set.counters(
    'fleetpost_event_loop_stalls_total',
    'Event-loop stalls of a thread longer than stallMilliseconds.',
    'thread',
    () => stalls().map(({ thread, stalls: { count } }) => [thread, count]),
  );
  set.counters(
    'fleetpost_event_loop_stalled_seconds_total',
    'Total duration of event-loop stalls.',
    'thread',
    () => stalls().map(({ thread, stalls: { seconds } }) => [thread, seconds]),
  );
}

function addCertificateMetrics(set: MetricSet, { certificates, acme }: AdminContext): void {
  set.gauges(
    'fleetpost_certificate_expiry_timestamp_seconds',
    'When the certificate of a listener expires. A temporary one, until ACME has one, lasts a day.',
    'listener',
    () => certificates.map(({ listener, endMs }) => [listener, endMs / 1_000]),
  );
  if (acme === undefined) return;
  set.gauge(
    'fleetpost_acme_failures',
    'Certificate orders that failed since the last one that succeeded.',
    () => acme.failures,
  );
}

/** Adds metrics of the export of spans, unless it is off. */
function addTraceMetrics(set: MetricSet, { traces }: AdminContext): void {
  if (traces === undefined) return;
  set.counter('fleetpost_spans_exported_total', 'Spans accepted by traceUrl.', () => traces.exported);
  set.counter(
    'fleetpost_spans_dropped_total',
    'Spans dropped: too many, or not accepted.',
    () => traces.dropped,
  );
}

/**
 * Registers all metrics of the server but those of its process. They are read from shared memory, so that a scrape disturbs no worker, but for
 * those of features, which `collect` reads before each scrape.
 */
export function registerMetrics(
  context: AdminContext,
  admission: Admitted,
): { registry: Registry; collect(): Promise<void> } {
  const set = new MetricSet();
  const { registry } = set;
  addDeviceApiMetrics(set, context);
  addShardMetrics(set, context);
  addHealthMetrics(set, context);
  addServerMetrics(set, context);
  addAdmissionMetrics(set, admission);
  addCertificateMetrics(set, context);
  addBackupMetrics(set, context);
  addBroadcastMetrics(set, context);
  addTraceMetrics(set, context);
  const readActions = addActionMetrics(registry, context);
  const readForwarders = addForwarderMetrics(registry, context);
  const readConsumers = addConsumerMetrics(registry, context);
  const collect = async (): Promise<void> => {
    await readActions();
    await readForwarders();
    await readConsumers();
  };
  return { registry, collect };
}

/** Adds prom-client's own metrics, but for gauges whose names say that they are counters. */
function measureProcess(register: Registry): void {
  collectDefaultMetrics({ register });
  for (const kind of ['handles', 'requests', 'resources']) {
    register.removeSingleMetric(`nodejs_active_${kind}_total`);
  }
}

/** Returns all current metrics in Prometheus' text format. */
export type Scrape = () => Promise<{ type: string; text: string }>;

export function createScrape(context: AdminContext, admission: Admitted): Scrape {
  const { registry, collect } = registerMetrics(context, admission);
  let isProcessMeasured = false;
  // Concurrent scrapes share one, because each reads all figures, over several turns of the event loop.
  const scraping = new SingleFlight(async () => {
    // Not before somebody scrapes: measuring the event loop wakes the thread 100 times a second, for 1 % of a core.
    if (!isProcessMeasured) measureProcess(registry);
    isProcessMeasured = true;
    await collect();
    return { type: registry.contentType, text: await registry.metrics() };
  });
  return () => scraping.run();
}

const scraping = {
  summary: 'Scrape metrics for Prometheus',
  security: [],
  response: { 200: { content: { 'text/plain': { schema: Type.String() } } } },
};

const answerScrape =
  (scrape: Scrape): Handler<typeof scraping> =>
  async (_request, reply) => {
    const { type, text } = await scrape();
    return reply.type(type).send(text);
  };

/** Adds `/metrics`. */
export function addMetricsRoute(app: AdminApp, scrape: Scrape): void {
  app.get('/metrics', { schema: scraping }, answerScrape(scrape));
}
