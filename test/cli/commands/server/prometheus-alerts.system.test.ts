import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { alerts } from '../../../../src/cli/commands/server/prometheus-alerts.ts';
import { temporaryFolder } from '../../../harness/machine/temporary-folder.ts';
import { fleetpost } from '../../../harness/server/command.ts';

/** Causes of each alert: a series, by its first value and its growth a minute, over three hours. */
const causes: Record<string, string> = {
  FleetpostNotReady: 'fleetpost_ready{reason="disk_full"} 0+0x180',
  FleetpostCommitsFail: 'fleetpost_commit_failures_total{shard="0"} 0+1x180',
  FleetpostWritesRefused: 'fleetpost_writes_refused_total{shard="0"} 0+1x180',
  FleetpostDiskFillsUp: 'fleetpost_disk_free_bytes 1000000000-1000000x180',
  FleetpostStalls: 'fleetpost_event_loop_stalls_total{thread="main"} 0+1x180',
  FleetpostAuditLost: 'fleetpost_audit_entries_lost_total 0+1x180',
  FleetpostDeadLettersDropped: 'fleetpost_dead_letters_dropped_total{shard="0"} 0+1x180',
  FleetpostSchemasDisabled: 'fleetpost_schemas_disabled 1+0x180',
  FleetpostConsumerLags: 'fleetpost_consumer_lag_seconds{consumer="a",fleet="F"} 4000+0x180',
  FleetpostRecordsLost: 'fleetpost_action_lost_records{action="a",fleet="F"} 1+0x180',
  FleetpostActionHeld: 'fleetpost_action_held{action="a",fleet="F"} 1+0x180',
  FleetpostForwarderHeld: 'fleetpost_forwarder_held{forwarder="a",fleet="F"} 1+0x180',
  FleetpostActionDevicesBlocked: 'fleetpost_action_devices_blocked{action="a",fleet="F"} 1+0x180',
  FleetpostCompilerLost: 'fleetpost_action_compiler_losses_total{reason="memory"} 0+1x180',
  FleetpostConnectionsRefused: 'fleetpost_connections_refused_total{reason="connectionsMax"} 0+1x180',
  FleetpostBackupOld: 'fleetpost_backup_timestamp_seconds -200000+0x180',
  FleetpostCertificateEnds: 'fleetpost_certificate_expiry_timestamp_seconds{listener="device"} 900000+0x180',
};
/** The same of a server that is well, hours after its start. */
const well = [
  'fleetpost_ready{reason="none"} 1+0x240',
  'fleetpost_commit_failures_total{shard="0"} 3+0x240',
  'fleetpost_writes_refused_total{shard="0"} 3+0x240',
  'fleetpost_disk_free_bytes 3000000000+0x240',
  'fleetpost_event_loop_stalls_total{thread="main"} 3+0x240',
  'fleetpost_schemas_disabled 0+0x240',
  'fleetpost_consumer_lag_seconds{consumer="a",fleet="F"} 5+0x240',
  'fleetpost_action_held{action="a",fleet="F"} 0+0x240',
  'fleetpost_connections_refused_total{reason="connectionsMax"} 3+0x240',
  'fleetpost_backup_timestamp_seconds 200000+0x240',
  'fleetpost_certificate_expiry_timestamp_seconds{listener="device"} 9000000+0x240',
];

const firing = (name: string) => `count(ALERTS{alertname="${name}",alertstate="firing"})`;

function test(series: readonly string[], evalTime: string, name: string, isFiring: boolean): string {
  const lines = series.map((one) => {
    const at = one.lastIndexOf(' ');
    return `      - { series: ${JSON.stringify(one.slice(0, at))}, values: "${one.slice(at + 1)}" }`;
  });
  const samples = isFiring ? '[{ labels: "{}", value: 1 }]' : '[]';
  return [
    '  - interval: 1m',
    '    input_series:',
    ...lines,
    '    promql_expr_test:',
    `      - { expr: ${JSON.stringify(firing(name))}, eval_time: ${evalTime}, exp_samples: ${samples} }`,
  ].join('\n');
}

it('Prometheus takes the rules; each fires by what it is for, and none where all is well', async () => {
  const folder = temporaryFolder();
  const { stdout } = await fleetpost(['alerts']);
  writeFileSync(join(folder, 'rules.yml'), stdout);
  expect(Object.keys(causes)).toEqual(alerts.map(({ name }) => name));
  const tests = Object.entries(causes).flatMap(([name, cause]) => [
    test([cause], '2h', name, true),
    test(well, '3h', name, false),
  ]);
  writeFileSync(join(folder, 'test.yml'), `rule_files: [rules.yml]\ntests:\n${tests.join('\n')}\n`);
  const promtool = (...words: string[]) => execFileSync('promtool', words, { cwd: folder, encoding: 'utf8' });
  expect(promtool('check', 'rules', 'rules.yml')).toContain(`SUCCESS: ${alerts.length} rules found`);
  expect(promtool('test', 'rules', 'test.yml')).toContain('SUCCESS');
  rmSync(folder, { recursive: true });
});
