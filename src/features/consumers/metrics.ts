import { Gauge } from 'prom-client';
import type { MetricSet } from '../../admin-api/request/metric-set.ts';
import type { ConsumerService, ConsumerShardStatus } from './consumer-service.ts';

interface Needs {
  consumers: ConsumerService;
}

/** Adds the lag of every consumer. */
export function addConsumerMetrics(set: MetricSet, { consumers }: Needs): void {
  const labelNames = ['fleet', 'consumer'];
  const gauges: { gauge: Gauge; read(shards: readonly ConsumerShardStatus[]): number }[] = [];
  const addGauge = (
    name: string,
    help: string,
    read: (shards: readonly ConsumerShardStatus[]) => number,
  ): void => {
    gauges.push({ gauge: new Gauge({ name, help, labelNames, registers: [set.registry] }), read });
  };
  addGauge(
    'fleetpost_consumer_lag_records',
    'Positions of all logs that the consumer has not acknowledged.',
    (shards) => shards.reduce((sum, { behind }) => sum + behind, 0),
  );
  addGauge('fleetpost_consumer_lag_seconds', 'Age of the oldest record not acknowledged.', (shards) =>
    Math.max(...shards.map(({ secondsBehind }) => secondsBehind)),
  );
  addGauge(
    'fleetpost_consumer_lost_records',
    'Positions trimmed by retention before the consumer read them.',
    (shards) => shards.reduce((sum, { lost }) => sum + lost, 0),
  );
  set.beforeScrape(async () => {
    // Deleted consumers are no longer reported.
    for (const { gauge } of gauges) gauge.reset();
    for await (const { fleetId, name, shards } of consumers.all()) {
      for (const { gauge, read } of gauges) gauge.set({ fleet: fleetId, consumer: name }, read(shards));
    }
  });
}
