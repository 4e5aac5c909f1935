import { Counter, Gauge, type Registry } from 'prom-client';
import type { AdminContext } from '../../admin-api/request/context.ts';

/** Adds the metrics of all forwarders. Returns what to call before a scrape, for all of them at once. */
export function addForwarderMetrics(metrics: Registry, { forwarders }: AdminContext): () => Promise<void> {
  const labelNames = ['fleet', 'forwarder'];
  const registers = [metrics];
  const records = new Counter({
    name: 'fleetpost_forwarder_records_total',
    help: 'Records since the start: delivered, failed (in attempts that are retried), dead or dropped.',
    labelNames: [...labelNames, 'outcome'],
    registers,
  });
  const behind = new Gauge({
    name: 'fleetpost_forwarder_behind',
    help: 'Positions of the logs that a forwarder has not forwarded yet.',
    labelNames,
    registers,
  });
  const deadLetters = new Gauge({
    name: 'fleetpost_forwarder_dead_letters',
    help: 'Dead letters of a forwarder: records that the destination refused.',
    labelNames,
    registers,
  });
  const held = new Gauge({
    name: 'fleetpost_forwarder_held',
    help: 'Whether an enabled forwarder waits: in backoff, because its dead letters are full, or with the held server.',
    labelNames,
    registers,
  });
  return async () => {
    // Deleted forwarders are no longer reported.
    for (const metric of [records, behind, deadLetters, held]) metric.reset();
    for await (const { forwarder, state, counts, ...status } of forwarders.all()) {
      const labels = { fleet: forwarder.fleetId, forwarder: forwarder.name };
      for (const [outcome, count] of Object.entries(counts)) records.inc({ ...labels, outcome }, count);
      behind.set(labels, status.behind);
      deadLetters.set(labels, status.deadLetters);
      held.set(labels, Number(state !== 'running' && state !== 'paused'));
    }
  };
}
