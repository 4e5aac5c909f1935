import type { Command } from 'commander';
import { alerts } from './prometheus-alerts.ts';

/** `dashboard`, which needs no server. */
export function addDashboardCommand(program: Command): void {
  program
    .command('dashboard')
    .description('print a Grafana dashboard for /metrics, ready to import')
    .action(() => {
      process.stdout.write(`${JSON.stringify(dashboard(), undefined, 2)}\n`);
    });
}

/** One series of a panel: a PromQL query and its legend. */
type Query = readonly [expression: string, legend: string];

interface PanelOptions {
  unit?: string;
  /** Width in columns, of 24. */
  width?: number;
}

interface Panel extends Required<PanelOptions> {
  title: string;
  queries: readonly Query[];
}

const panel = (title: string, queries: readonly Query[], options: PanelOptions = {}): Panel => ({
  title,
  queries,
  unit: 'short',
  width: 8,
  ...options,
});

/** Selects the chosen instances; Grafana sets $__rate_interval by the zoom. */
const at = '{instance=~"$instance"}';
const rate = (metric: string, by: string): string =>
  `sum by (${by}) (rate(${metric}${at}[$__rate_interval]))`;
const sum = (metric: string, by?: string): string => `sum ${by ? `by (${by}) ` : ''}(${metric}${at})`;
const quantile = (share: number): string =>
  `histogram_quantile(${share}, ${rate('fleetpost_request_duration_seconds_bucket', 'le')})`;
const ofAlerts = `alertname=~"${alerts.map(({ name }) => name).join('|')}"`;

const rows: readonly (readonly [title: string, panels: readonly Panel[]])[] = [
  [
    'Devices',
    [
      panel('Requests by route', [[rate('fleetpost_requests_total', 'route'), '{{route}}']], {
        unit: 'reqps',
      }),
      panel('Responses by status', [[rate('fleetpost_requests_total', 'status'), '{{status}}']], {
        unit: 'reqps',
      }),
      panel(
        'Response time',
        [
          [quantile(0.5), 'p50'],
          [quantile(0.99), 'p99'],
        ],
        { unit: 's' },
      ),
      panel('Connections and streams', [
        [sum('fleetpost_connections_open'), 'connections'],
        [sum('fleetpost_streams_open'), 'streams'],
      ]),
      panel('Devices', [
        [sum('fleetpost_devices'), 'all'],
        [sum('fleetpost_devices_connected'), 'with an event stream'],
        [sum('fleetpost_lockouts'), 'locked out'],
      ]),
      panel('Mails waiting', [[sum('fleetpost_mails_waiting'), 'mails']]),
      panel('Connections refused', [[rate('fleetpost_connections_refused_total', 'reason'), '{{reason}}']]),
      panel(
        'Stalled event loops',
        [[rate('fleetpost_event_loop_stalled_seconds_total', 'thread'), 'thread {{thread}}']],
        { unit: 'percentunit' },
      ),
    ],
  ],
  [
    'Shards',
    [
      panel('Writes waiting', [[sum('fleetpost_shard_queue_depth', 'shard'), 'shard {{shard}}']]),
      panel('Committed writes', [[rate('fleetpost_committed_writes_total', 'shard'), 'shard {{shard}}']], {
        unit: 'wps',
      }),
      panel('Commits', [[rate('fleetpost_commits_total', 'shard'), 'shard {{shard}}']]),
      panel('Writes per commit', [
        [
          `${rate('fleetpost_commit_batch_size_sum', 'shard')} / ${rate('fleetpost_commit_batch_size_count', 'shard')}`,
          'shard {{shard}}',
        ],
      ]),
      panel('Failed commits', [[rate('fleetpost_commit_failures_total', 'shard'), 'shard {{shard}}']]),
      panel('Writes refused (store full)', [
        [rate('fleetpost_writes_refused_total', 'shard'), 'shard {{shard}}'],
      ]),
    ],
  ],
  [
    'Actions',
    [
      panel('Action lag', [[sum('fleetpost_action_behind', 'fleet, action'), '{{fleet}} {{action}}']]),
      panel('Runs in progress', [[sum('fleetpost_action_in_hand', 'fleet, action'), '{{fleet}} {{action}}']]),
      panel('Attempts', [[rate('fleetpost_action_attempts_total', 'outcome'), '{{outcome}}']]),
      panel('Dead letters of actions', [
        [sum('fleetpost_action_dead_letters', 'fleet, action'), '{{fleet}} {{action}}'],
      ]),
      panel('Devices behind', [
        [sum('fleetpost_action_devices_behind', 'fleet, action'), '{{fleet}} {{action}}'],
      ]),
      panel('Devices blocked', [
        [sum('fleetpost_action_devices_blocked', 'fleet, action'), '{{fleet}} {{action}}'],
      ]),
      panel('Compilers lost', [[rate('fleetpost_action_compiler_losses_total', 'reason'), '{{reason}}']]),
      panel('Actions held', [[sum('fleetpost_action_held', 'fleet, action'), '{{fleet}} {{action}}']]),
      panel('Records lost to retention', [
        [sum('fleetpost_action_lost_records', 'fleet, action'), '{{fleet}} {{action}}'],
        [sum('fleetpost_consumer_lost_records', 'fleet, consumer'), '{{fleet}} {{consumer}}'],
      ]),
    ],
  ],
  [
    'Consumers, forwarders and broadcasts',
    [
      panel('Consumer lag', [
        [sum('fleetpost_consumer_lag_records', 'fleet, consumer'), '{{fleet}} {{consumer}}'],
      ]),
      panel(
        'Age of the oldest record not acknowledged',
        [[sum('fleetpost_consumer_lag_seconds', 'fleet, consumer'), '{{fleet}} {{consumer}}']],
        { unit: 's' },
      ),
      panel('Forwarder lag', [
        [sum('fleetpost_forwarder_behind', 'fleet, forwarder'), '{{fleet}} {{forwarder}}'],
      ]),
      panel('Forwarded records', [[rate('fleetpost_forwarder_records_total', 'outcome'), '{{outcome}}']]),
      panel('Dead letters of forwarders', [
        [sum('fleetpost_forwarder_dead_letters', 'fleet, forwarder'), '{{fleet}} {{forwarder}}'],
      ]),
      panel('Forwarders held', [
        [sum('fleetpost_forwarder_held', 'fleet, forwarder'), '{{fleet}} {{forwarder}}'],
      ]),
      panel('Broadcasts', [[sum('fleetpost_broadcasts_active', 'instance'), '{{instance}}']]),
      panel('Mails of broadcasts', [[rate('fleetpost_broadcast_mails_total', 'outcome'), '{{outcome}}']]),
      panel('Dropped or lost', [
        [rate('fleetpost_dead_letters_dropped_total', 'instance'), 'dead letters {{instance}}'],
        [rate('fleetpost_audit_entries_lost_total', 'instance'), 'audit entries {{instance}}'],
      ]),
    ],
  ],
  [
    'Server',
    [
      panel('Alerts that fire', [
        [
          `count by (alertname) (ALERTS{alertstate="firing",instance=~"$instance",${ofAlerts}})`,
          '{{alertname}}',
        ],
      ]),
      panel('Ready', [[`min by (reason) (fleetpost_ready${at})`, '{{reason}}']]),
      panel('Free disk', [[sum('fleetpost_disk_free_bytes', 'instance'), '{{instance}}']], { unit: 'bytes' }),
      panel('Size', [[sum('fleetpost_shard_bytes', 'shard'), 'shard {{shard}}']], { unit: 'bytes' }),
      panel(
        'Time until a certificate expires',
        [[`fleetpost_certificate_expiry_timestamp_seconds${at} - time()`, '{{instance}} {{listener}}']],
        { unit: 's' },
      ),
      panel('Held, and schemas disabled', [
        [sum('fleetpost_held', 'instance'), 'held {{instance}}'],
        [sum('fleetpost_schemas_disabled', 'instance'), 'schemas disabled {{instance}}'],
      ]),
      panel('Age of the backup', [[`time() - fleetpost_backup_timestamp_seconds${at}`, '{{instance}}']], {
        unit: 's',
      }),
    ],
  ],
  [
    'Process',
    [
      panel('CPU', [[rate('process_cpu_seconds_total', 'instance'), '{{instance}}']], {
        unit: 'percentunit',
      }),
      panel('Resident memory', [[sum('process_resident_memory_bytes', 'instance'), '{{instance}}']], {
        unit: 'bytes',
      }),
      panel('Stalls', [[rate('fleetpost_event_loop_stalls_total', 'thread'), 'thread {{thread}}']]),
    ],
  ],
];

const height = 8;
const datasource = { type: 'prometheus', uid: '$datasource' };

/** Builds the dashboard's JSON model, for Grafana 10 and later. */
export function dashboard(): object {
  const panels: object[] = [];
  let y = 0;
  for (const [title, ofRow] of rows) {
    panels.push({ id: panels.length + 1, type: 'row', title, gridPos: { x: 0, y, w: 24, h: 1 } });
    y += 1;
    let x = 0;
    for (const { title, queries, unit, width } of ofRow) {
      if (x + width > 24) {
        x = 0;
        y += height;
      }
      panels.push({
        id: panels.length + 1,
        type: 'timeseries',
        title,
        datasource,
        gridPos: { x, y, w: width, h: height },
        fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
        targets: queries.map(([expr, legendFormat], index) => ({
          refId: String.fromCharCode(65 + index),
          datasource,
          expr,
          legendFormat,
        })),
      });
      x += width;
    }
    y += height;
  }
  const variable = { refresh: 1, current: {}, hide: 0 };
  return {
    title: 'Fleetpost',
    uid: 'fleetpost',
    schemaVersion: 39,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: {
      list: [
        { ...variable, name: 'datasource', type: 'datasource', query: 'prometheus' },
        {
          ...variable,
          name: 'instance',
          type: 'query',
          datasource,
          query: 'label_values(fleetpost_connections_open, instance)',
          includeAll: true,
          multi: true,
          allValue: '.*',
        },
      ],
    },
    panels,
  };
}
