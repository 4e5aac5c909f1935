import type { Command } from 'commander';

/** `alerts`, which needs no server. */
export function addAlertsCommand(program: Command): void {
  program
    .command('alerts')
    .description('print alert rules for /metrics, for Prometheus')
    .action(() => {
      process.stdout.write(alertRules());
    });
}

/** An alert that is worth waking somebody for; docs/run/watching.md lists the same by name. */
interface Alert {
  name: string;
  /** PromQL; holds while it has a result. */
  expression: string;
  /** How long it must hold, as Prometheus writes it. */
  lasting: string;
  severity: 'critical' | 'warning';
  summary: string;
}

const grows = (metric: string): string => `increase(${metric}[10m]) > 0`;

/** A metric that a server does not have, of backups on PostgreSQL say, never raises its alert. */
export const alerts: readonly Alert[] = [
  {
    name: 'FleetpostNotReady',
    expression: 'fleetpost_ready == 0',
    lasting: '1m',
    severity: 'critical',
    summary: 'Not ready: {{ $labels.reason }}.',
  },
  {
    name: 'FleetpostCommitsFail',
    expression: grows('fleetpost_commit_failures_total'),
    lasting: '0m',
    severity: 'critical',
    summary: 'Commits of shard {{ $labels.shard }} fail; the log says why.',
  },
  {
    name: 'FleetpostWritesRefused',
    expression: grows('fleetpost_writes_refused_total'),
    lasting: '0m',
    severity: 'critical',
    summary: 'Shard {{ $labels.shard }} refuses writes: it, its disk or its store is full.',
  },
  {
    name: 'FleetpostDiskFillsUp',
    expression: 'predict_linear(fleetpost_disk_free_bytes[6h], 86400) < 0',
    lasting: '1h',
    severity: 'warning',
    summary: 'The disk of the data folder is full within a day.',
  },
  {
    name: 'FleetpostStalls',
    expression: grows('fleetpost_event_loop_stalls_total'),
    lasting: '0m',
    severity: 'warning',
    summary: 'The event loop of thread {{ $labels.thread }} stalled.',
  },
  {
    name: 'FleetpostAuditLost',
    expression: grows('fleetpost_audit_entries_lost_total'),
    lasting: '0m',
    severity: 'critical',
    summary: 'Entries of the audit log could not be written.',
  },
  {
    name: 'FleetpostDeadLettersDropped',
    expression: grows('fleetpost_dead_letters_dropped_total'),
    lasting: '0m',
    severity: 'warning',
    summary: 'Dead letters were dropped for newer ones (deadLettersPerFleetMax).',
  },
  {
    name: 'FleetpostSchemasDisabled',
    expression: 'fleetpost_schemas_disabled > 0',
    lasting: '0m',
    severity: 'warning',
    summary: '{{ $value }} schemas are disabled: `fleetpost schema list` shows them.',
  },
  {
    name: 'FleetpostConsumerLags',
    expression: 'fleetpost_consumer_lag_seconds > 3600',
    lasting: '10m',
    severity: 'warning',
    summary: 'Consumer {{ $labels.consumer }} of {{ $labels.fleet }} is more than an hour behind.',
  },
  {
    name: 'FleetpostRecordsLost',
    expression: 'fleetpost_consumer_lost_records > 0 or fleetpost_action_lost_records > 0',
    lasting: '0m',
    severity: 'critical',
    summary: 'Retention was faster than a reader of {{ $labels.fleet }}: raise logRetentionSeconds.',
  },
  {
    name: 'FleetpostActionHeld',
    expression: 'fleetpost_action_held > 0',
    lasting: '10m',
    severity: 'warning',
    summary: 'Action {{ $labels.action }} of {{ $labels.fleet }} is held.',
  },
  {
    name: 'FleetpostForwarderHeld',
    expression: 'fleetpost_forwarder_held > 0',
    lasting: '10m',
    severity: 'warning',
    summary: 'Forwarder {{ $labels.forwarder }} of {{ $labels.fleet }} is held.',
  },
  {
    name: 'FleetpostActionDevicesBlocked',
    expression: 'fleetpost_action_devices_blocked > 0',
    lasting: '10m',
    severity: 'warning',
    summary:
      '{{ $value }} devices wait in action {{ $labels.action }} of {{ $labels.fleet }}: their dead letters are full.',
  },
  {
    name: 'FleetpostCompilerLost',
    expression: grows('fleetpost_action_compiler_losses_total'),
    lasting: '0m',
    severity: 'warning',
    summary: 'A source ended the compiler of actions ({{ $labels.reason }}); the log names who checked what.',
  },
  {
    name: 'FleetpostConnectionsRefused',
    expression: grows('fleetpost_connections_refused_total'),
    lasting: '0m',
    severity: 'warning',
    summary: 'Connections are refused ({{ $labels.reason }}).',
  },
  {
    name: 'FleetpostBackupOld',
    expression: 'time() - fleetpost_backup_timestamp_seconds > 2 * 86400',
    lasting: '1h',
    severity: 'warning',
    summary: 'No backup of the data folder was completed for two days.',
  },
  {
    name: 'FleetpostCertificateEnds',
    expression: 'fleetpost_certificate_expiry_timestamp_seconds - time() < 14 * 86400',
    lasting: '1h',
    severity: 'warning',
    summary: 'The certificate of listener {{ $labels.listener }} ends within two weeks.',
  },
];

/** The rules file: YAML, in which every text is written as JSON. */
export function alertRules(): string {
  const rules = alerts.map(({ name, expression, lasting, severity, summary }) =>
    [
      `      - alert: ${name}`,
      `        expr: ${JSON.stringify(expression)}`,
      `        for: ${lasting}`,
      `        labels: { severity: ${severity} }`,
      `        annotations: { summary: ${JSON.stringify(summary)} }`,
    ].join('\n'),
  );
  return `groups:\n  - name: fleetpost\n    rules:\n${rules.join('\n')}\n`;
}
