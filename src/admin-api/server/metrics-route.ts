import { Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from 'prom-client';
import { Type } from 'typebox';
import { SingleFlight } from '../../core/async.ts';
import { batchBounds, latencyBounds, type WorkerMetrics } from '../../core/telemetry/worker-metrics.ts';
import { addActionMetrics } from '../../features/actions/metrics.ts';
import { addBroadcastMetrics } from '../../features/broadcasts/metrics.ts';
import { addConsumerMetrics } from '../../features/consumers/metrics.ts';
import { addForwarderMetrics } from '../../features/forwarders/metrics.ts';
import type { AdminApp, AdminContext, Handler } from '../request/context.ts';

/** Adds metrics of the export of spans, unless it is off. */
function addTraceMetrics(registry: Registry, { traces }: AdminContext): void {
  if (traces === undefined) return;
  const registers = [registry];
  const add = (name: string, help: string, read: () => number): void => {
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  };
  add('fleetpost_spans_exported_total', 'Spans accepted by traceUrl.', () => traces.exported);
  add('fleetpost_spans_dropped_total', 'Spans dropped: too many, or not accepted.', () => traces.dropped);
}

/** Counts by bucket, not cumulative, the last for values beyond all bounds; and the sum of all values. */
type Buckets = { counts: number[]; sum: number };

/** A histogram whose counts are read from elsewhere: prom-client's own can only observe one value at a time. */
class SharedHistogram {
  readonly type = 'histogram';
  readonly aggregator = 'sum';
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly #bounds: readonly number[];
  readonly #label: string;
  readonly #read: () => Buckets[];

  /** `read` returns one histogram for each value of the label, which is its index. */
  constructor(name: string, help: string, bounds: readonly number[], label: string, read: () => Buckets[]) {
    this.name = name;
    this.help = help;
    this.#bounds = bounds;
    this.labelNames = [label];
    this.#label = label;
    this.#read = read;
  }

  /** Called by prom-client on each scrape. */
  get() {
    const { name, help, type, aggregator } = this;
    return {
      name,
      help,
      type,
      aggregator,
      values: this.#read().flatMap((buckets, index) => this.#values(buckets, index)),
    };
  }

  #values({ counts, sum }: Buckets, index: number) {
    const labels = { [this.#label]: index };
    let count = 0;
    const buckets = counts.map((inBucket, bucket) => {
      count += inBucket;
      return {
        metricName: `${this.name}_bucket`,
        labels: { ...labels, le: this.#bounds[bucket] ?? '+Inf' },
        value: count,
      };
    });
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels, value: sum },
      { metricName: `${this.name}_count`, labels, value: count },
    ];
  }
}

type Values = Iterable<readonly [label: string | number, value: number]>;

/** Adds a counter that is read from elsewhere, for each value of a label. */
function addCounter(registry: Registry, name: string, help: string, label: string, read: () => Values): void {
  new Counter({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    collect() {
      this.reset();
      for (const [value, count] of read()) this.inc({ [label]: value }, count);
    },
  });
}

/** Adds a gauge that is read from elsewhere, for each value of a label. */
function addGauge(registry: Registry, name: string, help: string, label: string, read: () => Values): void {
  new Gauge({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    collect() {
      for (const [value, level] of read()) this.set({ [label]: value }, level);
    },
  });
}

function addHistogram(registry: Registry, histogram: SharedHistogram): void {
  registry.registerMetric(histogram as unknown as Metric);
}

function addDeviceApiMetrics(registry: Registry, { metrics, connections }: AdminContext): void {
  const registers = [registry];
  new Counter({
    name: 'fleetpost_requests_total',
    help: 'Requests answered on the device API.',
    labelNames: ['route', 'status'],
    registers,
    collect() {
      this.reset();
      for (const worker of metrics) {
        for (const { route, status, count } of worker.requests()) this.inc({ route, status }, count);
      }
    },
  });
  addHistogram(
    registry,
    new SharedHistogram(
      'fleetpost_request_duration_seconds',
      'Time from the head of a request to its answer.',
      latencyBounds,
      'worker',
      () => metrics.map((worker) => worker.latency()),
    ),
  );
  new Gauge({
    name: 'fleetpost_connections_open',
    help: 'Open connections of the device API, including those in their TLS handshake.',
    registers,
    collect() {
      this.set(connections.open);
    },
  });
  new Counter({
    name: 'fleetpost_connections_refused_total',
    help: 'Connections closed on arrival: connectionsMax, connectionsPerAddressMax.',
    registers,
    collect() {
      this.reset();
      this.inc(connections.refused);
    },
  });
  addGauge(registry, 'fleetpost_streams_open', 'Open event streams.', 'worker', () =>
    metrics.map(({ openStreams }, worker) => [worker, openStreams]),
  );
}

function addShardMetrics(registry: Registry, context: AdminContext): void {
  const { metrics, queueDepth, shards, connectedOf, devicesOf } = context;
  const ofShards = (name: string, help: string, read: (shard: number) => number): void =>
    addGauge(registry, name, help, 'shard', () => shards.all.map((_, shard) => [shard, read(shard)]));
  const ofOwners = (name: string, help: string, read: (owner: WorkerMetrics) => number): void =>
    addCounter(registry, name, help, 'shard', () => metrics.map((owner, shard) => [shard, read(owner)]));

  ofShards(
    'fleetpost_devices_connected',
    'Devices of the shard with open event streams, on any worker.',
    connectedOf,
  );
  ofShards('fleetpost_devices', 'Devices of all fleets.', devicesOf);
  addGauge(registry, 'fleetpost_shard_queue_depth', 'Writes in flight.', 'shard', () =>
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
  addHistogram(
    registry,
    new SharedHistogram(
      'fleetpost_commit_batch_size',
      'Writes in one transaction.',
      batchBounds,
      'shard',
      () => metrics.map((owner) => owner.batchSizes()),
    ),
  );
}

function addServerMetrics(registry: Registry, context: AdminContext): void {
  const { audit, hold, stalls } = context;
  const registers = [registry];
  new Gauge({
    name: 'fleetpost_held',
    help: 'Whether forwarders, actions, broadcasts and delayed mail wait for a release.',
    registers,
    collect() {
      this.set(Number(hold.isHeld));
    },
  });
  new Counter({
    name: 'fleetpost_audit_entries_lost_total',
    help: 'Entries of the audit log that could not be written.',
    registers,
    collect() {
      this.reset();
      this.inc(audit.lost);
    },
  });
  new Gauge({
    name: 'fleetpost_schemas_disabled',
    help: 'Schemas disabled because a check took too long or they cannot be compiled.',
    registers,
    collect() {
      const schemas = context.registry.snapshots().flatMap((fleet) => fleet.schemas);
      this.set(schemas.filter(({ disabled }) => disabled !== undefined).length);
    },
  });
  addCounter(
    registry,
    'fleetpost_event_loop_stalls_total',
    'Event-loop stalls of a thread longer than stallMilliseconds.',
    'thread',
    () => stalls().map(({ thread, stalls: { count } }) => [thread, count]),
  );
  addCounter(
    registry,
    'fleetpost_event_loop_stalled_seconds_total',
    'Total duration of event-loop stalls.',
    'thread',
    () => stalls().map(({ thread, stalls: { seconds } }) => [thread, seconds]),
  );
}

function addCertificateMetrics(registry: Registry, { certificates, acme }: AdminContext): void {
  addGauge(
    registry,
    'fleetpost_certificate_expiry_timestamp_seconds',
    'When the certificate of a listener expires. A temporary one, until ACME has one, lasts a day.',
    'listener',
    () => certificates.map(({ listener, endMs }) => [listener, endMs / 1_000]),
  );
  if (acme === undefined) return;
  new Gauge({
    name: 'fleetpost_acme_failures',
    help: 'Certificate orders that failed since the last one that succeeded.',
    registers: [registry],
    collect() {
      this.set(acme.failures);
    },
  });
}

/**
 * Registers all metrics of the server. They are read from shared memory, so that a scrape disturbs no worker, but for
 * those of features, which `collect` reads before each scrape.
 */
export function registerMetrics(context: AdminContext): { registry: Registry; collect(): Promise<void> } {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  addDeviceApiMetrics(registry, context);
  addShardMetrics(registry, context);
  addServerMetrics(registry, context);
  addCertificateMetrics(registry, context);
  addBroadcastMetrics(registry, context);
  addTraceMetrics(registry, context);
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

/** Returns all current metrics in Prometheus' text format. */
export type Scrape = () => Promise<{ type: string; text: string }>;

export function createScrape(context: AdminContext): Scrape {
  const { registry, collect } = registerMetrics(context);
  // Concurrent scrapes share one, because each reads all figures, over several turns of the event loop.
  const scraping = new SingleFlight(async () => {
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
