import { Counter, collectDefaultMetrics, type Registry } from 'prom-client';
import { Type } from 'typebox';
import { SingleFlight, sleep } from '../../core/async.ts';
import type { NotReady } from '../../core/telemetry/readiness.ts';
import { programVersion } from '../../core/telemetry/version.ts';
import { batchBounds, latencyBounds, type WorkerMetrics } from '../../core/telemetry/worker-metrics.ts';
import type { DeclaredHold } from '../../declarations/declared-hold.ts';
import type { Registry as Declared } from '../../declarations/registry.ts';
import type { AuditLog } from '../../domain/audit-log.ts';
import type { LockoutList } from '../../domain/devices/lockout.ts';
import type { Shards } from '../../domain/shard.ts';
import type { AdminApp, Handler } from '../request/admin-app.ts';
import { MetricSet } from '../request/metric-set.ts';
import type { Admission } from './admission.ts';
import type { ActivityView } from './top.ts';

interface DeviceApiFigures {
  /** One per worker; worker k owns shard k. */
  metrics: readonly WorkerMetrics[];
  connections: { readonly open: number; refused(): readonly [reason: string, count: number][] };
}

function addDeviceApiMetrics(set: MetricSet, { metrics, connections }: DeviceApiFigures): void {
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
  set.counters(
    'fleetpost_connections_refused_total',
    'Connections closed on arrival, by the limit that they were beyond.',
    'reason',
    () => connections.refused(),
  );
  set.gauges('fleetpost_streams_open', 'Open event streams, and requests that wait for mail.', 'worker', () =>
    metrics.map(({ openStreams }, worker) => [worker, openStreams]),
  );
}

interface ShardFigures {
  metrics: readonly WorkerMetrics[];
  shards: Shards;
  /** Writes in flight to a shard. */
  queueDepth(shard: number): number;
  /** Devices of a shard that have open event streams. */
  connectedOf(shard: number): number;
  /** Devices that a shard holds. */
  devicesOf(shard: number): number;
  activity: ActivityView;
}

function addShardMetrics(set: MetricSet, figures: ShardFigures): void {
  const { metrics, queueDepth, shards, connectedOf, devicesOf, activity } = figures;
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

interface HealthFigures {
  notReady(): readonly NotReady[];
  activity: ActivityView;
  lockouts: LockoutList;
}

/** Adds what alerts begin with: whether the server is ready, and what it is soon short of. */
function addHealthMetrics(set: MetricSet, { notReady, activity, lockouts }: HealthFigures): void {
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

interface MainFigures {
  audit: AuditLog;
  hold: DeclaredHold;
  registry: Declared;
  /** Number and total duration of each thread's event-loop stalls. */
  stalls(): { thread: string; stalls: { count: number; seconds: number } }[];
}

function addServerMetrics(set: MetricSet, { audit, hold, registry, stalls }: MainFigures): void {
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

interface CertificateFigures {
  /** One for each listener in HTTPS. */
  certificates: readonly { readonly listener: string; readonly endMs: number }[];
  /** Undefined if no certificate is obtained from an ACME directory. */
  acme: { readonly failures: number } | undefined;
}

function addCertificateMetrics(set: MetricSet, { certificates, acme }: CertificateFigures): void {
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

/** Sources of the server's own metrics. */
export type ServerFigures = DeviceApiFigures &
  ShardFigures &
  HealthFigures &
  MainFigures &
  CertificateFigures;

/**
 * Registers all metrics of the server but those of its process; `others` are those of features. They are read from
 * shared memory, so that a scrape disturbs no worker, but for those that are collected before each scrape.
 */
export function registerMetrics(
  figures: ServerFigures,
  admission: Admitted,
  others: readonly ((set: MetricSet) => void)[],
): MetricSet {
  const set = new MetricSet();
  addDeviceApiMetrics(set, figures);
  addShardMetrics(set, figures);
  addHealthMetrics(set, figures);
  addServerMetrics(set, figures);
  addAdmissionMetrics(set, admission);
  addCertificateMetrics(set, figures);
  for (const add of others) add(set);
  return set;
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

/** Pause between scrapes, each of which takes some milliseconds of this thread: who asks meanwhile shares the next one. */
const pauseMs = 50;

export function createScrape(set: MetricSet): Scrape {
  const { registry } = set;
  let isProcessMeasured = false;
  let endedAtMs = Number.NEGATIVE_INFINITY;
  // Concurrent scrapes share one, because each reads all figures, over several turns of the event loop.
  const scraping = new SingleFlight(async () => {
    // Not before somebody scrapes: measuring the event loop wakes the thread 100 times a second, for 1 % of a core.
    if (!isProcessMeasured) measureProcess(registry);
    isProcessMeasured = true;
    const waitMs = endedAtMs + pauseMs - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    await set.collect();
    const text = await registry.metrics();
    endedAtMs = performance.now();
    return { type: registry.contentType, text };
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
