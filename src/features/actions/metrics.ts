import { Counter, Gauge, type Registry } from 'prom-client';
import type { AdminContext } from '../../admin-api/request/context.ts';
import type { ActionStatus } from './service.ts';

/**
 * How every action is doing. Answers what to call before a scrape: for all figures together, since to ask how an
 * action is doing takes a look at every log.
 */
export function addActionMetrics(metrics: Registry, { actions }: AdminContext): () => Promise<void> {
  const labelNames = ['fleet', 'action'];
  const registers = [metrics];
  const gauges: { gauge: Gauge; read(status: ActionStatus): number }[] = [];
  const addGauge = (name: string, help: string, read: (status: ActionStatus) => number): void => {
    gauges.push({ gauge: new Gauge({ name, help, labelNames, registers }), read });
  };
  addGauge('fleetpost_action_behind', 'Positions of the log not looked at yet.', ({ behind }) => behind);
  addGauge(
    'fleetpost_action_in_hand',
    'Records being run, or waiting for a thread or another attempt.',
    ({ inHand }) => inHand,
  );
  addGauge('fleetpost_action_parked', 'Runs that were given up.', ({ parked }) => parked);
  addGauge(
    'fleetpost_action_devices_behind',
    'Devices with their share of what is in hand or parked, whose records wait.',
    ({ devicesBehind }) => devicesBehind,
  );
  addGauge(
    'fleetpost_action_held',
    'Whether it takes no records though it is enabled: for its rate, too many parked runs or devices behind.',
    ({ held }) => Number(held !== undefined),
  );
  const attempts = new Counter({
    name: 'fleetpost_action_attempts_total',
    help: 'Attempts at runs since the start, by how they ended: done, failed (another follows) or parked.',
    labelNames: [...labelNames, 'outcome'],
    registers,
  });
  return async () => {
    // Those that are gone are no longer told.
    for (const { gauge } of gauges) gauge.reset();
    attempts.reset();
    for await (const status of actions.all()) {
      const labels = { fleet: status.action.fleetId, action: status.action.name };
      for (const { gauge, read } of gauges) gauge.set(labels, read(status));
      for (const [outcome, count] of Object.entries(status.attempts)) {
        attempts.inc({ ...labels, outcome }, count);
      }
    }
  };
}
