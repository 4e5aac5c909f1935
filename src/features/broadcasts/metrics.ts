import type { MetricSet } from '../../admin-api/request/metric-set.ts';
import type { BroadcastService } from './broadcast-service.ts';

interface Needs {
  broadcasts: BroadcastService;
}

/** Adds the metrics of broadcasts. */
export function addBroadcastMetrics(set: MetricSet, { broadcasts }: Needs): void {
  set.gauge('fleetpost_broadcasts_active', 'Running and paused broadcasts.', () => broadcasts.active);
  set.counters(
    'fleetpost_broadcast_mails_total',
    'Mails of broadcasts since the start, by outcome.',
    'outcome',
    () => Object.entries(broadcasts.counts),
  );
}
