import { Counter, Gauge } from 'prom-client';
import type { MetricSet } from '../../admin-api/request/metric-set.ts';
import type { ForwarderWork } from './forwarder-work.ts';

interface Needs {
  forwarderWork: ForwarderWork;
}

/** Adds the metrics of all forwarders. */
export function addForwarderMetrics(set: MetricSet, { forwarderWork }: Needs): void {
  const labelNames = ['fleet', 'forwarder'];
  const registers = [set.registry];
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
  set.beforeScrape(async () => {
    // Deleted forwarders are no longer reported.
    for (const metric of [records, behind, deadLetters, held]) metric.reset();
    for await (const { forwarder, state, counts, ...status } of forwarderWork.all()) {
      const labels = { fleet: forwarder.fleetId, forwarder: forwarder.name };
      for (const [outcome, count] of Object.entries(counts)) records.inc({ ...labels, outcome }, count);
      behind.set(labels, status.behind);
      deadLetters.set(labels, status.deadLetters);
      held.set(labels, Number(state !== 'running' && state !== 'paused'));
    }
  });
}
