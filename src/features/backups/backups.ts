import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { ApiError } from '../../core/errors.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { StorageConfig } from '../../storage/config.ts';
import { type BackupSource, foldersOf, makeEmptyFolder } from '../../storage/lmdb/environment/backup.ts';
import { holdSnapshot } from '../../storage/lmdb/environment/copy-environment.ts';
import type { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import { recordsFile } from '../../storage/lmdb/environment/database-file.ts';
import { writeDurable } from '../../storage/lmdb/environment/durable.ts';
import { backupName } from '../../storage/lmdb/environment/older-backups.ts';
import type { Backup, BackupRequest, Backups } from './backup.ts';
import { realPathOf, unfitFor } from './backup-place.ts';
import type { BackupEnd, BackupMessage, BackupTask } from './backup-process.ts';
import type { BackupConfig } from './config.ts';

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

  async close(): Promise<void> {}
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
  /** Settles when the last process is gone, with all that it needed. */
  #ended: Promise<void> | undefined;
  /** Releases the snapshot that is being copied. */
  #release: (() => Promise<void>) | undefined;

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
  async close(): Promise<void> {
    this.#process?.kill('SIGKILL');
    await this.#ended;
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
    let ended: BackupEnd = { type: 'failed', reason: 'its process was stopped' };
    const child = fork(new URL('./backup-process.js', import.meta.url), { stdio: ['ignore', 2, 2, 'ipc'] });
    this.#process = child;
    const fail = (error: Error): void => {
      ended = { type: 'failed', reason: error.message };
      child.kill('SIGKILL');
    };
    child.on('message', (message: BackupMessage) => {
      if (message.type === 'hold') this.#hold(child, message.folder).catch(fail);
      else if (message.type === 'release') this.#releaseSnapshot().catch(fail);
      else if (message.type === 'damaged') this.#logDamaged(message);
      else ended = message;
    });
    child.on('error', fail);
    this.#ended = once(child, 'close')
      .catch(fail)
      .then(() => this.#releaseSnapshot())
      .catch(fail)
      .then(() => {
        this.#process = undefined;
        this.#end(ended);
      });
    child.send(task);
  }

  /** Lets the process copy an environment. It may not open the environment as this one has it: `copyEnvironment`. */
  async #hold(child: ChildProcess, folder: string): Promise<void> {
    await this.#releaseSnapshot();
    if (child !== this.#process) return;
    this.#release = holdSnapshot(folder);
    child.send({ type: 'held' });
  }

  async #releaseSnapshot(): Promise<void> {
    const release = this.#release;
    this.#release = undefined;
    await release?.();
  }

  #logDamaged({ folder, reason }: Extract<BackupMessage, { type: 'damaged' }>): void {
    this.#log.warn({ folder, reason }, 'copy damaged; copying again');
  }

  #end(message: BackupEnd): void {
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
