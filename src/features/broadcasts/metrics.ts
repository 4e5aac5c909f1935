import { Counter, Gauge, type Registry } from 'prom-client';
import type { AdminContext } from '../../admin-api/request/context.ts';

/** Adds the metrics of broadcasts. */
export function addBroadcastMetrics(metrics: Registry, { broadcasts }: AdminContext): void {
  const registers = [metrics];
  new Gauge({
    name: 'fleetpost_broadcasts_active',
    help: 'Running and paused broadcasts.',
    registers,
    collect() {
      this.set(broadcasts.active);
    },
  });
  new Counter({
    name: 'fleetpost_broadcast_mails_total',
    help: 'Mails of broadcasts since the start, by outcome.',
    labelNames: ['outcome'],
    registers,
    collect() {
      this.reset();
      for (const [outcome, count] of Object.entries(broadcasts.counts)) this.inc({ outcome }, count);
    },
  });
}
