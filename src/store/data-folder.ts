import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { OperatorError } from '../core/errors.ts';
import { writeDurable } from './durable.ts';
import { FolderLock } from './folder-lock.ts';

/** Raised when the layout of the folder or of a record changes. */
export const formatVersion = 4;
/** Since when shards remember what mail was sent for. */
export const onceFormat = 3;
/** Since when shards have indexes of devices by all that these are found by, and count them. */
export const deviceIndexFormat = 4;
/** Since when shards keep receipts, dead letters and delayed mail. Nothing of older ones is rewritten for it. */
export const mailLedgerFormat = 4;
export const manifestFile = 'manifest.json';
/**
 * The folders of what the main thread keeps besides the registry: what becomes of records by actions; and how far
 * jobs and consumers have come. Either may be missing: see `isMade`.
 */
export const journalNames = ['actions', 'control'] as const;
export type JournalName = (typeof journalNames)[number];

/**
 * A change of the shard count that has begun and not come to its end. The manifest's `shards` says which of
 * the two layouts is whole; what the other one has on disk is yet to be removed.
 */
export interface Move {
  from: number;
  to: number;
  /** Where the logs of the shards that both layouts have ended when it began. */
  logEnds: readonly number[];
}

export interface Manifest {
  format: number;
  shards: number;
  /** False until the first start has come to its end. Nothing was answered before that, so it starts over. */
  complete: boolean;
  move?: Move;
}

/** The data folder of one server: what is where, made on first use, held by one process at a time. */
export class DataFolder {
  readonly path: string;
  /** Whether this start made it. */
  readonly isNew: boolean;
  readonly #lock: FolderLock;
  #format: number;
  #shards: number;
  #move: Move | undefined;

  private constructor(
    path: string,
    manifest: Pick<Manifest, 'format' | 'shards' | 'move'>,
    isNew: boolean,
    lock: FolderLock,
  ) {
    this.path = path;
    this.isNew = isNew;
    this.#format = manifest.format;
    this.#shards = manifest.shards;
    this.#move = manifest.move;
    this.#lock = lock;
  }

  /**
   * Opens or makes the folder and locks it. `shards` is for a new folder; another keeps what it has.
   * @throws OperatorError when the folder is in use, of another kind, of a newer version, or cannot be read or
   * written.
   */
  static open(folder: string, shards: number): DataFolder {
    const path = resolve(folder);
    let lock: FolderLock | undefined;
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      // Before anything is left in a folder that is not ours; and again, for a holder may just have finished it.
      readManifest(path);
      lock = FolderLock.take(path);
      const manifest = readManifest(path);
      if (!manifest?.complete) {
        const folder = new DataFolder(path, { format: formatVersion, shards }, true, lock);
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
    if (!manifest.complete) throw new OperatorError(`The data folder ${path} never saw its first start end.`);
    if (manifest.move !== undefined) {
      throw new OperatorError(
        `The data folder ${path} is in the midst of a move to another shard count: start the server, which ends it.`,
      );
    }
    return new DataFolder(path, manifest, false, FolderLock.take(path));
  }

  /** The end of a first start: from now on what is here is kept. */
  complete(): void {
    this.#writeManifest(true);
  }

  /** Until `endUpgrade`, what an older version has written is not all that this one needs. */
  get format(): number {
    return this.#format;
  }

  /** The folder is of this version's format; no older one takes it any more. */
  endUpgrade(): void {
    this.#format = formatVersion;
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

  /** Not where it says so already: a server comes back on a full disk. */
  writeAdminFile(content: { url: string; token?: string }): void {
    if (JSON.stringify(this.readAdminFile()) === JSON.stringify(content)) return;
    writeDurable(this.adminFile, content, 0o600);
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
      shards: this.#shards,
      complete,
      ...(this.#move && { move: this.#move }),
    };
    writeDurable(join(this.path, manifestFile), manifest, 0o644);
  }
}

function readManifest(path: string): Manifest | undefined {
  let text: string;
  try {
    text = readFileSync(join(path, manifestFile), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    const strangers = readdirSync(path).filter((name) => name !== 'lock' && name !== `${manifestFile}.new`);
    if (strangers.length === 0) return undefined;
    if (strangers.includes('backup.json')) {
      throw new OperatorError(
        `${path} is a backup: bring it back with "fleetpost restore ${path} --data DIR" and serve that.`,
      );
    }
    throw new OperatorError(
      `${path} is not a Fleetpost data folder: it has files but no manifest.json. Name an empty folder, or restore a backup into one.`,
    );
  }
  let manifest: Partial<Manifest> | undefined;
  try {
    manifest = JSON.parse(text) as Partial<Manifest>;
  } catch {
    // Said below, with everything else that is not a manifest.
  }
  if (
    !Number.isInteger(manifest?.format) ||
    !Number.isInteger(manifest?.shards) ||
    typeof manifest?.complete !== 'boolean'
  ) {
    throw new OperatorError(`${join(path, manifestFile)} is damaged: restore it from a backup.`);
  }
  const { format, shards, complete, move } = manifest as Manifest;
  if (format > formatVersion) {
    throw new OperatorError(
      `The data folder ${path} was written by a newer Fleetpost (format ${format}; this one knows ${formatVersion}): run that version.`,
    );
  }
  return { format, shards, complete, ...(move && { move }) };
}
