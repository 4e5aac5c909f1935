import type { AdminContext } from '../../admin-api/request/context.ts';
import type { MetricSet } from '../../admin-api/request/metric-set.ts';

/** Adds the metrics of broadcasts. */
export function addBroadcastMetrics(set: MetricSet, { broadcasts }: AdminContext): void {
  set.gauge('fleetpost_broadcasts_active', 'Running and paused broadcasts.', () => broadcasts.active);
  set.counters(
    'fleetpost_broadcast_mails_total',
    'Mails of broadcasts since the start, by outcome.',
    'outcome',
    () => Object.entries(broadcasts.counts),
  );
}
