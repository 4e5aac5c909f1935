import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { OperatorError } from '../../../core/errors.ts';
import { isDiskFull, overwriteInPlace, writeDurable } from './durable.ts';
import { FolderLock } from './folder-lock.ts';
import {
  checkEngine,
  copyFile,
  formatVersion,
  type Manifest,
  type Move,
  manifestFile,
  readManifest,
  type StoreEngine,
} from './manifest.ts';

/**
 * The folders of what the main thread keeps besides the registry: what becomes of records by actions; and how far
 * jobs and consumers have come.
 */
export const journalNames = ['actions', 'control'] as const;
export type JournalName = (typeof journalNames)[number];

type Layout = Pick<Manifest, 'shards' | 'engine'>;

/** The data folder of one server: what is where, made on first use, held by one process at a time. */
export class DataFolder {
  readonly path: string;
  /** Whether this start made it. */
  readonly isNew: boolean;
  readonly #lock: FolderLock;
  readonly #engine: 'postgres' | undefined;
  #shards: number;
  #move: Move | undefined;

  private constructor(
    path: string,
    { shards, engine, move }: Layout & Pick<Manifest, 'move'>,
    isNew: boolean,
    lock: FolderLock,
  ) {
    this.path = path;
    this.isNew = isNew;
    this.#shards = shards;
    this.#engine = engine;
    this.#move = move;
    this.#lock = lock;
  }

  /**
   * Opens or makes the folder and locks it. `shards` is for a new folder; another keeps what it has. Where the data is
   * elsewhere the folder is for the node's own needs alone.
   * @throws OperatorError when the folder is in use, of another kind or format, or cannot be read or
   * written.
   */
  static open(folder: string, engine: StoreEngine, shards: number): DataFolder {
    const path = resolve(folder);
    let lock: FolderLock | undefined;
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      // Before anything is left in a folder that is not ours; and again, for a holder may just have finished it.
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
      return new DataFolder(path, manifest, false, lock);
    } catch (error) {
      lock?.release();
      if (error instanceof OperatorError) throw error;
      throw new OperatorError(`The data folder ${path} cannot be used: ${(error as Error).message}`);
    }
  }

  /** The folder of a server that is stopped, as it is. @throws OperatorError */
  static openStopped(folder: string): DataFolder {
    const path = resolve(folder);
    const manifest = existsSync(path) ? readManifest(path) : undefined;
    if (manifest === undefined) throw new OperatorError(`There is no data folder in ${path}.`);
    checkEngine(path, manifest, 'lmdb');
    if (!manifest.complete) throw new OperatorError(`The data folder ${path} never saw its first start end.`);
    if (manifest.move !== undefined) {
      throw new OperatorError(
        `The data folder ${path} is in the midst of a move to another shard count: start the server, which ends it.`,
      );
    }
    return new DataFolder(path, manifest, false, FolderLock.take(path));
  }

  /**
   * An empty folder that a copy goes into, or one that the same copy has begun with; `copy` says which it is. Its
   * manifest is there only where that copy has come to its end and not yet cleared up. @throws OperatorError
   */
  static openForCopy(folder: string, shards: number, copy: string): DataFolder {
    const path = resolve(folder);
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const lock = FolderLock.take(path);
    try {
      const strangers = readdirSync(path).filter((name) => name !== 'lock' && !name.endsWith('.new'));
      if (strangers.length > 0 && readCopy(path) !== copy) {
        throw new OperatorError(
          `${path} is not empty, and no copy of the same store has begun there: name an empty folder.`,
        );
      }
      writeDurable(join(path, copyFile), { copy }, 0o600);
      return new DataFolder(path, { shards }, !strangers.includes(manifestFile), lock);
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /** The end of a copy into the folder; what it kept of how far it had come is gone. */
  endCopy(): void {
    rmSync(join(this.path, copyFile), { force: true });
  }

  /** The end of a first start, or of a copy: from now on what is here is kept. */
  complete(): void {
    this.#writeManifest(true);
  }

  /** The layout that is whole. */
  get shards(): number {
    return this.#shards;
  }

  /** What an earlier start, or this one, has left unfinished. */
  get move(): Move | undefined {
    return this.#move;
  }

  /** From now on, and after a crash, there may be traces of another layout than `shards`. */
  beginMove(move: Move): void {
    this.#move = move;
    this.#writeManifest(true);
  }

  /** The point of no return: everything of the new layout is on disk, and it is the one that is whole. */
  switchLayout(): void {
    if (this.#move === undefined) throw new Error('no move has begun');
    this.#shards = this.#move.to;
    this.#writeManifest(true);
  }

  /** Nothing is left of the other layout. */
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

  /** The folders of a layout, whether it is the present one or not. */
  foldersOf(shards: number): string[] {
    return Array.from({ length: shards }, (_, shard) => join(this.path, 'shards', String(shard)));
  }

  /** Of a node of databases: copies of what is there, made anew at each start. */
  get mirrorFolder(): string {
    return join(this.path, 'mirror');
  }

  get tlsFolder(): string {
    return join(this.path, 'tls');
  }

  /** Where commands find the running server (client/connection.ts reads it). */
  get adminFile(): string {
    return join(this.path, 'admin.json');
  }

  /** What admin.json held before, if there was one. */
  readAdminFile(): unknown {
    try {
      return JSON.parse(readFileSync(this.adminFile, 'utf8'));
    } catch {
      return undefined;
    }
  }

  /** Over the old one where a new one does not fit: a server comes back on a full disk. */
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
      format: formatVersion,
      shards: this.#shards,
      ...(this.#engine && { engine: this.#engine }),
      complete,
      ...(this.#move && { move: this.#move }),
    };
    writeDurable(join(this.path, manifestFile), manifest, 0o644);
  }
}

/** Which copy has begun with the folder, if one has. */
function readCopy(path: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(join(path, copyFile), 'utf8')) as { copy?: string }).copy;
  } catch {
    return undefined;
  }
}
