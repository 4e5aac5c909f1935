import { type ChildProcess, fork } from 'node:child_process';
import { statSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Backup, Backups } from '../../admin-api/request/context.ts';
import { ApiError } from '../../core/errors.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { StorageConfig } from '../../storage/config.ts';
import { type BackupSource, foldersOf, makeEmptyFolder } from '../../storage/lmdb/environment/backup.ts';
import type { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import { recordsFile } from '../../storage/lmdb/environment/database-file.ts';
import type { BackupMessage, BackupTask } from './backup-process.ts';

/** Backups of a server whose data is in a database: none. */
export class NoBackups implements Backups {
  readonly isRunning = false;

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
  readonly #log: Log;
  #backup: Backup | undefined;
  #process: ChildProcess | undefined;

  constructor(
    { path, shardFolders, registryFolder }: DataFolder,
    { mapBytesMax }: Pick<StorageConfig, 'mapBytesMax'>,
    log: Log,
  ) {
    this.#source = { path, shardFolders, registryFolder, mapBytesMax };
    this.#log = log;
  }

  /** @throws ApiError backup_running, unusable_folder. */
  start(folder: string): Backup {
    if (this.#process !== undefined) throw new ApiError('backup_running');
    const inside = relative(this.#source.path, folder);
    if (inside === '' || !inside.startsWith('..')) {
      throw new ApiError('unusable_folder', {
        msg: 'The backup folder is inside the data folder. Choose one outside of it.',
      });
    }
    try {
      makeEmptyFolder(folder);
    } catch (error) {
      throw new ApiError('unusable_folder', {
        msg: `The backup folder cannot be used: ${(error as Error).message}.`,
      });
    }
    this.#backup = {
      folder,
      state: 'running',
      startedAtMs: Date.now(),
      endedAtMs: undefined,
      bytes: 0,
      bytesTotal: this.#bytesIn(this.#source.path),
      reason: undefined,
    };
    this.#run({ source: this.#source, target: folder });
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
      this.#backup = { ...ended, state: 'done', bytes: message.bytes, bytesTotal: message.bytes };
      this.#log.info({ folder: ended.folder, bytes: message.bytes }, 'backup completed');
    } else {
      this.#backup = { ...ended, state: 'failed', reason: message.reason };
      this.#log.error({ folder: ended.folder, reason: message.reason }, 'backup failed');
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
