import { Gauge, type Registry } from 'prom-client';
import type { AdminContext } from '../../admin-api/request/context.ts';
import type { ConsumerShardStatus } from './service.ts';

/** How far every consumer is behind. Answers what to call before a scrape. */
export function addConsumerMetrics(metrics: Registry, { consumers }: AdminContext): () => Promise<void> {
  const labelNames = ['fleet', 'consumer'];
  const gauges: { gauge: Gauge; read(shards: readonly ConsumerShardStatus[]): number }[] = [];
  const addGauge = (
    name: string,
    help: string,
    read: (shards: readonly ConsumerShardStatus[]) => number,
  ): void => {
    gauges.push({ gauge: new Gauge({ name, help, labelNames, registers: [metrics] }), read });
  };
  addGauge('fleetpost_consumer_lag_records', 'Positions of all logs not done yet.', (shards) =>
    shards.reduce((sum, { behind }) => sum + behind, 0),
  );
  addGauge('fleetpost_consumer_lag_seconds', 'Age of the oldest of them.', (shards) =>
    Math.max(...shards.map(({ secondsBehind }) => secondsBehind)),
  );
  addGauge(
    'fleetpost_consumer_lost_records',
    'Positions that were trimmed from the logs before it came there.',
    (shards) => shards.reduce((sum, { lost }) => sum + lost, 0),
  );
  return async () => {
    // Those that are gone are no longer told.
    for (const { gauge } of gauges) gauge.reset();
    for await (const { fleetId, name, shards } of consumers.all()) {
      for (const { gauge, read } of gauges) gauge.set({ fleet: fleetId, consumer: name }, read(shards));
    }
  };
}
