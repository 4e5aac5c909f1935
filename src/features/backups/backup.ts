/** A backup, running or ended. */
export interface Backup {
  folder: string;
  state: 'running' | 'done' | 'failed';
  startedAtMs: number;
  endedAtMs: number | undefined;
  bytes: number;
  /** An estimate until it is done. */
  bytesTotal: number;
  /** Set if it failed. */
  reason: string | undefined;
  /** Number of older backups that were removed after it. */
  removed: number;
}

export interface BackupRequest {
  /** Absent: under its time in `backupFolder`. */
  folder?: string;
  /** Number of backups to keep in `backupFolder`, this one included. */
  keep?: number;
}

export interface Backups {
  /** @throws ApiError backup_running, unusable_folder. */
  start(request: BackupRequest): Backup;
  /** Returns the running or the last backup, also of earlier starts; undefined if there was none. */
  last(): Backup | undefined;
  /** When the last whole backup was completed, 0 for never; undefined where there are none, in databases. */
  readonly completedAtMs: number | undefined;
}
