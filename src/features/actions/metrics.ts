import { Counter, Gauge } from 'prom-client';
import type { MetricSet } from '../../admin-api/request/metric-set.ts';
import type { ActionStatus, ActionWork } from './action-work.ts';

interface Needs {
  actionWork: ActionWork;
}

/**
 * Adds the metrics of all actions. Their figures are collected together before a scrape,
 * since the status of an action needs the end of every log.
 */
export function addActionMetrics(set: MetricSet, { actionWork }: Needs): void {
  const labelNames = ['fleet', 'action'];
  const registers = [set.registry];
  const gauges: { gauge: Gauge; read(status: ActionStatus): number }[] = [];
  const addGauge = (name: string, help: string, read: (status: ActionStatus) => number): void => {
    gauges.push({ gauge: new Gauge({ name, help, labelNames, registers }), read });
  };
  addGauge('fleetpost_action_behind', 'Positions of the logs not scanned yet.', ({ behind }) => behind);
  addGauge(
    'fleetpost_action_lost_records',
    'Positions trimmed by retention before the action read them.',
    ({ lost }) => lost,
  );
  addGauge(
    'fleetpost_action_in_hand',
    'Records running, or waiting for a thread or another attempt.',
    ({ inHand }) => inHand,
  );
  addGauge(
    'fleetpost_action_dead_letters',
    'Dead letters: runs that failed for good.',
    ({ deadLetters }) => deadLetters,
  );
  addGauge(
    'fleetpost_action_devices_behind',
    'Devices whose records wait, as they have used their share of the records in hand or of the dead letters.',
    ({ devicesBehind }) => devicesBehind,
  );
  addGauge(
    'fleetpost_action_devices_blocked',
    'Devices whose records wait until some of their dead letters are replayed or dropped; those of others run.',
    ({ devicesBlocked }) => devicesBlocked,
  );
  addGauge(
    'fleetpost_action_held',
    'Whether an enabled action takes no records of any device: rate limit, too many dead letters or devices behind, or disk full.',
    ({ held }) => Number(held !== undefined),
  );
  const attempts = new Counter({
    name: 'fleetpost_action_attempts_total',
    help: 'Attempts at runs since the start, by outcome: done, failed (to be retried) or dead.',
    labelNames: [...labelNames, 'outcome'],
    registers,
  });
  const losses = new Counter({
    name: 'fleetpost_action_compiler_losses_total',
    help: 'Processes of the TypeScript compiler that a source has ended since the start, by reason: memory, cpu, wall, depth or ended.',
    labelNames: ['reason'],
    registers,
  });
  set.beforeScrape(async () => {
    // Removed actions are no longer reported.
    for (const { gauge } of gauges) gauge.reset();
    attempts.reset();
    losses.reset();
    for (const [reason, count] of Object.entries(actionWork.compilerLosses)) losses.inc({ reason }, count);
    for await (const status of actionWork.all()) {
      const labels = { fleet: status.action.fleetId, action: status.action.name };
      for (const { gauge, read } of gauges) gauge.set(labels, read(status));
      for (const [outcome, count] of Object.entries(status.attempts)) {
        attempts.inc({ ...labels, outcome }, count);
      }
    }
  });
}
