import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { OperatorError } from '../core/errors.ts';

/** Raised when the layout of the folder or of a record changes. */
const formatVersion = 2;

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

interface Manifest {
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
  #shards: number;
  #move: Move | undefined;

  private constructor(path: string, shards: number, isNew: boolean, move?: Move) {
    this.path = path;
    this.isNew = isNew;
    this.#shards = shards;
    this.#move = move;
  }

  /**
   * Opens or makes the folder and locks it. `shards` is for a new folder; another keeps what it has.
   * @throws OperatorError when the folder is in use, of another kind, of a newer version, or cannot be read or
   * written.
   */
  static open(folder: string, shards: number): DataFolder {
    const path = resolve(folder);
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      const manifest = readManifest(path);
      lock(path);
      if (!manifest?.complete) {
        const folder = new DataFolder(path, shards, true);
        folder.#startOver();
        return folder;
      }
      return new DataFolder(path, manifest.shards, false, manifest.move);
    } catch (error) {
      if (error instanceof OperatorError) throw error;
      throw new OperatorError(`The data folder ${path} cannot be used: ${(error as Error).message}`);
    }
  }

  /** The end of a first start: from now on what is here is kept. */
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

  writeAdminFile(content: { url: string; token: string }): void {
    writeDurable(this.adminFile, content, 0o600);
  }

  close(): void {
    rmSync(join(this.path, 'lock'), { force: true });
  }

  #startOver(): void {
    this.#writeManifest(false);
    for (const name of ['registry', 'shards'])
      rmSync(join(this.path, name), { recursive: true, force: true });
  }

  #writeManifest(complete: boolean): void {
    const manifest: Manifest = {
      format: formatVersion,
      shards: this.#shards,
      complete,
      ...(this.#move && { move: this.#move }),
    };
    writeDurable(join(this.path, 'manifest.json'), manifest, 0o644);
  }
}

function readManifest(path: string): Manifest | undefined {
  let text: string;
  try {
    text = readFileSync(join(path, 'manifest.json'), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    const strangers = readdirSync(path).filter((name) => name !== 'lock');
    if (strangers.length === 0) return undefined;
    throw new OperatorError(
      `${path} is not a Fleetpost data folder: it has files but no manifest.json. Name an empty folder, or restore the manifest.`,
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
    throw new OperatorError(`${join(path, 'manifest.json')} is damaged: restore it from a backup.`);
  }
  const { format, shards, complete, move } = manifest as Manifest;
  if (format > formatVersion) {
    throw new OperatorError(
      `The data folder ${path} was written by a newer Fleetpost (format ${format}; this one knows ${formatVersion}): run that version.`,
    );
  }
  return { format, shards, complete, ...(move && { move }) };
}

/** Written beside and renamed over, so that a crash leaves the old file or the new one. */
function writeDurable(file: string, content: object, mode: number): void {
  const temporary = `${file}.new`;
  writeFileSync(temporary, `${JSON.stringify(content, null, 2)}\n`, { mode, flush: true });
  renameSync(temporary, file);
  syncPath(dirname(file));
}

/** Has a file's bytes, or a folder's names, on disk. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** When a process started, in clock ticks since boot: tells a process from a later one of the same number. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}

function isRunning(pid: number, start: string | undefined): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  const startNow = startOf(pid);
  return startNow === undefined || start === undefined || startNow === start;
}

/** The lock names its holder, so that a kill -9 leaves nothing to clean up: a holder that is gone holds nothing. */
function lock(path: string): void {
  const file = join(path, 'lock');
  const content = JSON.stringify({ pid: process.pid, start: startOf(process.pid) });
  for (let attempt = 0; attempt < 2; attempt += 1) {
    try {
      writeFileSync(file, content, { flag: 'wx' });
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    let holder: { pid?: number; start?: string } = {};
    try {
      holder = JSON.parse(readFileSync(file, 'utf8')) as typeof holder;
    } catch {
      // Cut off while it was written: its writer is gone.
    }
    if (holder.pid !== undefined && holder.pid !== process.pid && isRunning(holder.pid, holder.start)) {
      throw new OperatorError(
        `The data folder ${path} is in use by process ${holder.pid}: stop that server first.`,
      );
    }
    rmSync(file, { force: true });
  }
  throw new OperatorError(`The data folder ${path} is being taken by another server.`);
}
