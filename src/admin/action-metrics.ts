import { Counter, Gauge, type Registry } from 'prom-client';
import type { ActionStatus } from './actions-control.ts';
import type { AdminContext } from './context.ts';

/** How every action is doing, asked when it is scraped. */
export function addActionMetrics(metrics: Registry, { registry, actions }: AdminContext): void {
  const statuses = (): { labels: { fleet: string; action: string }; status: ActionStatus }[] =>
    registry.snapshots().flatMap(({ fleet }) =>
      actions.list(fleet.fleetId).map((status) => ({
        labels: { fleet: fleet.fleetId, action: status.action.name },
        status,
      })),
    );
  const addGauge = (name: string, help: string, read: (status: ActionStatus) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['fleet', 'action'],
      registers: [metrics],
      collect() {
        // Those that are gone are no longer told.
        this.reset();
        for (const { labels, status } of statuses()) this.set(labels, read(status));
      },
    });
  addGauge('fleetpost_action_behind', 'Positions of the log not looked at yet.', ({ behind }) => behind);
  addGauge(
    'fleetpost_action_in_hand',
    'Records being run, or waiting for a thread or another attempt.',
    ({ inHand }) => inHand,
  );
  addGauge('fleetpost_action_parked', 'Runs that were given up.', ({ parked }) => parked);
  addGauge(
    'fleetpost_action_held',
    'Whether it takes no records though it is enabled: for its rate, or too many parked runs.',
    ({ held }) => Number(held !== undefined),
  );
  new Counter({
    name: 'fleetpost_action_attempts_total',
    help: 'Attempts at runs since the start, by how they ended: done, failed (another follows) or parked.',
    labelNames: ['fleet', 'action', 'outcome'],
    registers: [metrics],
    collect() {
      this.reset();
      for (const { labels, status } of statuses()) {
        for (const [outcome, count] of Object.entries(status.attempts))
          this.inc({ ...labels, outcome }, count);
      }
    },
  });
}
