import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { OperatorError } from '../../../core/errors.ts';
import { programVersion } from '../../../core/telemetry/version.ts';
import type { Move } from '../../../domain/placement.ts';
import { isDiskFull, overwriteInPlace, writeDurable } from './durable.ts';
import { FolderLock } from './folder-lock.ts';
import {
  checkEngine,
  copyFile,
  formatVersion,
  type Manifest,
  manifestFile,
  readManifest,
  refuseOlder,
  type StoreEngine,
} from './manifest.ts';

/** Folders of the main thread's journals: the state of actions; and the progress of jobs and consumers. */
export const journalNames = ['actions', 'control'] as const;
export type JournalName = (typeof journalNames)[number];

type Layout = Pick<Manifest, 'shards' | 'engine'> &
  Partial<Pick<Manifest, 'id' | 'format' | 'upgradingFrom' | 'move'>>;

/** Returns where a data folder, which may not exist yet, has certificates. */
export function tlsFolderIn(path: string): string {
  return join(path, 'tls');
}

/** The data folder of one server: its layout, created on first use, and locked by one process at a time. */
export class DataFolder {
  readonly path: string;
  /** Identifies it among the backups in a folder. */
  readonly id: string;
  /** True if this start created it. */
  readonly isNew: boolean;
  readonly #lock: FolderLock;
  readonly #engine: 'postgres' | undefined;
  #format: number;
  #upgradingFrom: number | undefined;
  #shards: number;
  #move: Move | undefined;

  private constructor(
    path: string,
    { id = randomUUID(), shards, engine, move, format = formatVersion, upgradingFrom }: Layout,
    isNew: boolean,
    lock: FolderLock,
  ) {
    this.path = path;
    this.id = id;
    this.isNew = isNew;
    this.#format = format;
    this.#upgradingFrom = upgradingFrom;
    this.#shards = shards;
    this.#engine = engine;
    this.#move = move;
    this.#lock = lock;
  }

  /**
   * Opens or creates the folder and locks it. `shards` applies to a new folder only. With the data in databases the
   * folder serves just the node's own needs.
   * @throws OperatorError if the folder is in use, of another kind, of a newer format, or not readable or writable.
   */
  static open(folder: string, engine: StoreEngine, shards: number): DataFolder {
    const path = resolve(folder);
    let lock: FolderLock | undefined;
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      // First without the lock, to leave no file in a foreign folder; then again, since a holder may just have
      // finished it.
      readManifest(path);
      lock = FolderLock.take(path);
      const manifest = readManifest(path);
      checkEngine(path, manifest, engine);
      if (!manifest?.complete) {
        const made: Layout = engine === 'lmdb' ? { shards } : { shards: 0, engine };
        const folder = new DataFolder(path, made, true, lock);
        folder.#startOver();
        return folder;
      }
      const opened = new DataFolder(path, manifest, false, lock);
      if (manifest.id === undefined) opened.#writeManifest(true);
      return opened;
    } catch (error) {
      lock?.release();
      if (error instanceof OperatorError) throw error;
      throw new OperatorError(`The data folder ${path} cannot be used: ${(error as Error).message}`);
    }
  }

  /** Opens the folder of a stopped server, of this version. @throws OperatorError */
  static openStopped(folder: string): DataFolder {
    const path = resolve(folder);
    const manifest = existsSync(path) ? readManifest(path) : undefined;
    if (manifest === undefined) throw new OperatorError(`No data folder in ${path}. Name another.`);
    checkEngine(path, manifest, 'lmdb');
    refuseOlder(
      `The data folder ${path}`,
      manifest,
      'Start the server, which upgrades it, or use the version that wrote it.',
    );
    if (!manifest.complete) {
      throw new OperatorError(`The first start in data folder ${path} never completed. Start the server.`);
    }
    if (manifest.move !== undefined) {
      throw new OperatorError(
        `The data folder ${path} is being resharded. Start the server, which finishes it.`,
      );
    }
    return new DataFolder(path, manifest, false, FolderLock.take(path));
  }

  /**
   * Opens an empty folder for a copy, or one where the same copy, identified by `copy`, has begun. It has a manifest
   * only if that copy is complete but not yet cleaned up. @throws OperatorError
   */
  static openForCopy(folder: string, shards: number, copy: string): DataFolder {
    const path = resolve(folder);
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const lock = FolderLock.take(path);
    try {
      const others = readdirSync(path).filter((name) => name !== 'lock' && !name.endsWith('.new'));
      if (others.length > 0 && readCopy(path) !== copy) {
        throw new OperatorError(
          `${path} is not empty, and has no begun copy of the same store. Name an empty folder.`,
        );
      }
      writeDurable(join(path, copyFile), { copy }, 0o600);
      return new DataFolder(path, { shards }, !others.includes(manifestFile), lock);
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /** Ends a copy, removing its progress. */
  endCopy(): void {
    rmSync(join(this.path, copyFile), { force: true });
  }

  /** Marks the folder complete after a first start or a copy: its content counts from now on. */
  complete(): void {
    this.#writeManifest(true);
  }

  /** The format that all records have at least: less than `formatVersion` before its upgrade. */
  get format(): number {
    return this.#upgradingFrom ?? this.#format;
  }

  /** True if an earlier start has begun an upgrade and not ended it. */
  get isUpgrading(): boolean {
    return this.#upgradingFrom !== undefined;
  }

  /** Marks that records of the next format may exist: from here on older versions refuse the folder. */
  beginUpgrade(): void {
    if (this.isUpgrading) return;
    this.#upgradingFrom = this.#format;
    this.#format += 1;
    this.#writeManifest(true);
  }

  /** Marks that all records have the next format. */
  endUpgrade(): void {
    this.#upgradingFrom = undefined;
    this.#writeManifest(true);
  }

  /** The shard count of the complete layout. */
  get shards(): number {
    return this.#shards;
  }

  /** A reshard left unfinished by an earlier start, or in progress. */
  get move(): Move | undefined {
    return this.#move;
  }

  /** Marks that, even after a crash, traces of another layout than `shards` may exist. */
  beginMove(move: Move): void {
    this.#move = move;
    this.#writeManifest(true);
  }

  /** The point of no return: the new layout is durable, and now the complete one. */
  switchLayout(): void {
    if (this.#move === undefined) throw new Error('no move has begun');
    this.#shards = this.#move.to;
    this.#writeManifest(true);
  }

  /** Marks that nothing is left of the other layout. */
  endMove(): void {
    this.#move = undefined;
    this.#writeManifest(true);
  }

  get registryFolder(): string {
    return join(this.path, 'registry');
  }

  journalFolder(name: JournalName): string {
    return join(this.path, name);
  }

  get shardFolders(): string[] {
    return this.foldersOf(this.#shards);
  }

  /** Shard folders of any layout. */
  foldersOf(shards: number): string[] {
    return Array.from({ length: shards }, (_, shard) => join(this.path, 'shards', String(shard)));
  }

  get tlsFolder(): string {
    return tlsFolderIn(this.path);
  }

  /** Tells commands where the running server is (cli/connection.ts reads it). */
  get adminFile(): string {
    return join(this.path, 'admin.json');
  }

  /** The last whole backup of this folder. */
  get lastBackupFile(): string {
    return join(this.path, 'last-backup.json');
  }

  /** The previous content of admin.json, if any. */
  readAdminFile(): unknown {
    try {
      return JSON.parse(readFileSync(this.adminFile, 'utf8'));
    } catch {
      return undefined;
    }
  }

  /** Overwrites the old file in place if a new one does not fit: a server must restart on a full disk. */
  writeAdminFile(content: { url: string; token?: string }): void {
    if (JSON.stringify(this.readAdminFile()) === JSON.stringify(content)) return;
    try {
      writeDurable(this.adminFile, content, 0o600);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      overwriteInPlace(this.adminFile, content);
    }
  }

  close(): void {
    this.#lock.release();
  }

  #startOver(): void {
    this.#writeManifest(false);
    for (const name of ['registry', 'shards', ...journalNames])
      rmSync(join(this.path, name), { recursive: true, force: true });
  }

  #writeManifest(complete: boolean): void {
    const manifest: Manifest = {
      format: this.#format,
      ...(this.#upgradingFrom !== undefined && { upgradingFrom: this.#upgradingFrom }),
      id: this.id,
      version: programVersion(),
      shards: this.#shards,
      ...(this.#engine && { engine: this.#engine }),
      complete,
      ...(this.#move && { move: this.#move }),
    };
    writeDurable(join(this.path, manifestFile), manifest, 0o644);
  }
}

/** The copy that has begun in the folder, if any. */
function readCopy(path: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(join(path, copyFile), 'utf8')) as { copy?: string }).copy;
  } catch {
    return undefined;
  }
}
