import type { MetricSet } from '../../admin-api/request/metric-set.ts';
import type { Backups } from './backup.ts';

interface Needs {
  backups: Backups;
}

/** Adds the age of the last backup, unless the data is in a database. */
export function addBackupMetrics(set: MetricSet, { backups }: Needs): void {
  if (backups.completedAtMs === undefined) return;
  set.gauge(
    'fleetpost_backup_timestamp_seconds',
    'When the last whole backup of the data folder was completed; 0 if there was none.',
    () => (backups.completedAtMs ?? 0) / 1_000,
  );
}
