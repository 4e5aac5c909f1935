import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { ApiError } from '../../core/errors.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { StorageConfig } from '../../storage/config.ts';
import { type BackupSource, foldersOf, makeEmptyFolder } from '../../storage/lmdb/environment/backup.ts';
import type { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import { recordsFile } from '../../storage/lmdb/environment/database-file.ts';
import { writeDurable } from '../../storage/lmdb/environment/durable.ts';
import { backupName } from '../../storage/lmdb/environment/older-backups.ts';
import { realPathOf, unfitFor } from './backup-place.ts';
import type { BackupMessage, BackupTask } from './backup-process.ts';
import type { BackupConfig } from './config.ts';
import type { Backup, BackupRequest, Backups } from './service.ts';

/** Reads what an earlier start has stored, if it is a backup. */
function readLast(file: string): Backup | undefined {
  try {
    const backup = JSON.parse(readFileSync(file, 'utf8')) as Partial<Backup>;
    const isKnown = typeof backup.folder === 'string' && Number.isFinite(backup.endedAtMs);
    return isKnown ? (backup as Backup) : undefined;
  } catch {
    return undefined;
  }
}

/** Backups of a server whose data is in a database: none. */
export class NoBackups implements Backups {
  readonly isRunning = false;
  readonly completedAtMs = undefined;

  /** @throws ApiError not_in_folder. */
  start(): Backup {
    throw new ApiError('not_in_folder');
  }

  last(): undefined {}

  close(): void {}
}

/** Takes backups of a running server, one at a time, each in a process of its own. */
export class BackupRunner implements Backups {
  readonly #source: BackupSource;
  readonly #id: string;
  readonly #lastFile: string;
  /** Folder of backups that name none. */
  readonly #folder: string;
  readonly #log: Log;
  #backup: Backup | undefined;
  #completedAtMs: number;
  #process: ChildProcess | undefined;

  constructor(
    { id, path, shardFolders, registryFolder, lastBackupFile }: DataFolder,
    { mapBytesMax, backupFolder }: Pick<StorageConfig, 'mapBytesMax'> & Pick<BackupConfig, 'backupFolder'>,
    log: Log,
  ) {
    this.#source = { path, shardFolders, registryFolder, mapBytesMax };
    this.#id = id;
    this.#lastFile = lastBackupFile;
    this.#folder = backupFolder || `${path}-backups`;
    this.#log = log;
    this.#backup = readLast(lastBackupFile);
    this.#completedAtMs = this.#backup?.endedAtMs ?? 0;
  }

  get completedAtMs(): number {
    return this.#completedAtMs;
  }

  /** @throws ApiError backup_running, unusable_folder. */
  start({ folder: named, keep }: BackupRequest): Backup {
    if (this.#process !== undefined) throw new ApiError('backup_running');
    const startedAtMs = Date.now();
    const folder = named ?? join(this.#folder, backupName(startedAtMs));
    const target = this.#emptyFolderAt(folder);
    this.#backup = {
      folder,
      state: 'running',
      startedAtMs,
      endedAtMs: undefined,
      bytes: 0,
      bytesTotal: this.#bytesIn(this.#source.path),
      reason: undefined,
      removed: 0,
    };
    this.#run({
      source: this.#source,
      target,
      isTimed: named === undefined,
      ...(keep !== undefined && { keep: { id: this.#id, count: keep } }),
    });
    return this.#backup;
  }

  /**
   * While true, no dedupe keys may be pruned: the copy of the actions may be older than that of a shard, which then has
   * to know their mail.
   */
  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  last(): Backup | undefined {
    const backup = this.#backup;
    if (backup?.state !== 'running') return backup;
    return { ...backup, bytes: Math.min(this.#bytesIn(backup.folder), backup.bytesTotal) };
  }

  /** Aborts a backup under way. It has no backup.json, so it is never taken for a complete one. */
  close(): void {
    this.#process?.kill('SIGKILL');
  }

  /** Returns the folder's real path. @throws ApiError unusable_folder. */
  #emptyFolderAt(folder: string): string {
    let unfit: string | undefined;
    try {
      const target = realPathOf(folder);
      unfit = unfitFor(target, realPathOf(this.#source.path), this.#folder);
      if (unfit === undefined) {
        makeEmptyFolder(target);
        return target;
      }
    } catch (error) {
      unfit = `The backup folder cannot be used: ${(error as Error).message}.`;
    }
    throw new ApiError('unusable_folder', { msg: unfit });
  }

  #run(task: BackupTask): void {
    let ended: BackupMessage = { type: 'failed', reason: 'its process was stopped' };
    const child = fork(new URL('./backup-process.js', import.meta.url), { stdio: ['ignore', 2, 2, 'ipc'] });
    this.#process = child;
    child.on('message', (message: BackupMessage) => {
      ended = message;
    });
    child.on('error', (error) => {
      ended = { type: 'failed', reason: error.message };
    });
    child.once('close', () => {
      this.#process = undefined;
      this.#end(ended);
    });
    child.send(task);
  }

  #end(message: BackupMessage): void {
    if (this.#backup === undefined) return;
    const ended = { ...this.#backup, endedAtMs: Date.now() };
    if (message.type === 'done') {
      const { bytes, removed, reason } = message;
      this.#backup = { ...ended, state: 'done', bytes, bytesTotal: bytes, removed, reason };
      this.#completedAtMs = ended.endedAtMs;
      this.#log.info({ folder: ended.folder, bytes, removed, reason }, 'backup completed');
      this.#storeLast(this.#backup);
    } else {
      this.#backup = { ...ended, state: 'failed', reason: message.reason };
      this.#log.error({ folder: ended.folder, reason: message.reason }, 'backup failed');
    }
  }

  /** For the next start. */
  #storeLast(backup: Backup): void {
    try {
      writeDurable(this.#lastFile, backup, 0o600);
    } catch (error) {
      this.#log.warn({ err: error }, 'the time of the last backup cannot be stored');
    }
  }

  /** Total size of the environments below a folder with the layout of the data folder. */
  #bytesIn(root: string): number {
    return foldersOf(this.#source).reduce((sum, folder) => {
      const file = join(root, relative(this.#source.path, folder), recordsFile);
      return sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0);
    }, 0);
  }
}
