import { createHash } from 'node:crypto';
import {
  createReadStream,
  existsSync,
  lstatSync,
  mkdirSync,
  type ReadStream,
  readdirSync,
  readFileSync,
  realpathSync,
} from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { OperatorError } from '../../../core/errors.ts';
import { syncPath } from '../../../core/replace-file.ts';
import { copyEnvironment, type SnapshotHold } from './copy-environment.ts';
import { type JournalName, journalNames } from './data-folder.ts';
import { recordsFile } from './database-file.ts';
import { writeDurable } from './durable.ts';
import { type Manifest, manifestFile, refuseNewer } from './manifest.ts';

/**
 * `backup.json`, written last: without it a backup is incomplete. LMDB's pages have no checksum, so the digests
 * reveal later decay.
 */
interface BackupManifest {
  /** The data folder's manifest. */
  manifest: Manifest;
  takenAt: string;
  /**
   * Journals are copied before the shards: an older journal causes mails to be sent again, which the shards
   * deduplicate; a newer one would take mails for sent that the copied shards lack. The registry comes after the
   * shards, so that every device's fleet is in it.
   */
  files: readonly BackupFile[];
}

interface BackupFile {
  /** Relative to the backup, such as `shards/0/data.mdb`. */
  path: string;
  bytes: number;
  sha256: string;
}

export interface BackupSource {
  path: string;
  shardFolders: readonly string[];
  registryFolder: string;
  mapBytesMax: number;
}

export const backupFile = 'backup.json';

export function isBackup(folder: string): boolean {
  return existsSync(join(folder, backupFile));
}

/** @throws Error if the folder is not empty or cannot be created. */
export function makeEmptyFolder(folder: string): void {
  makeFolder(folder);
  if (readdirSync(folder).length > 0) throw new Error(`${folder} is not empty`);
}

/** Makes a folder with its parents, one by one: `mkdirSync` with `recursive` never returns from below /proc. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  mkdirSync(folder, { mode: 0o700 });
}

/** All environments, in copying order. */
export function foldersOf({ path, shardFolders, registryFolder }: BackupSource): string[] {
  const journals = journalNames.map((name) => join(path, name));
  return [...journals, ...shardFolders, registryFolder];
}

/** The environments of a backup by role. */
export function environmentsOf(
  path: string,
  { files }: BackupManifest,
): Pick<BackupSource, 'shardFolders' | 'registryFolder'> & { journalFolders: Record<JournalName, string> } {
  const journalFolders = { actions: join(path, 'actions'), control: join(path, 'control') };
  const folders = files
    .filter((file) => journalOf(file) === undefined)
    .map((file) => join(path, dirname(file.path)));
  return { journalFolders, shardFolders: folders.slice(0, -1), registryFolder: folders.at(-1) ?? path };
}

/**
 * Copies a data folder, even while in use, into an empty folder. Each shard is copied as of one moment, and every page
 * of the copy is read before the backup is whole.
 * @throws OperatorError if the copies of an environment are damaged.
 */
export async function takeBackup(
  source: BackupSource,
  target: string,
  hold: SnapshotHold,
  onDamaged: (folder: string, reason: string) => void = () => {},
): Promise<BackupManifest> {
  const manifest = JSON.parse(readFileSync(join(source.path, manifestFile), 'utf8')) as Manifest;
  const files: BackupFile[] = [];
  for (const folder of foldersOf(source)) {
    const path = join(relative(source.path, folder), recordsFile);
    const copy = join(target, path);
    mkdirSync(dirname(copy), { recursive: true, mode: 0o700 });
    await copyEnvironment(folder, dirname(copy), {
      mapBytesMax: source.mapBytesMax,
      hold,
      onDamaged: (reason) => onDamaged(folder, reason),
    });
    files.push({ path, ...(await digestOf(createReadStream(copy, { highWaterMark: 1024 * 1024 }))) });
  }
  await sync(target, files);
  const backup: BackupManifest = { manifest, takenAt: new Date().toISOString(), files };
  writeDurable(join(target, backupFile), backup, 0o644);
  return backup;
}

/** @throws OperatorError if it is incomplete, or of a newer format. */
export function readBackup(folder: string): BackupManifest {
  let backup: BackupManifest;
  plainSizeOf(folder, backupFile);
  try {
    backup = JSON.parse(readFileSync(join(folder, backupFile), 'utf8')) as BackupManifest;
    if (!Number.isInteger(backup.manifest.format) || !isWhole(backup)) {
      throw new Error('not a manifest of a backup');
    }
  } catch (error) {
    if (isMissing(error)) {
      throw new OperatorError(`${folder} is not a complete backup: it has no ${backupFile}. Name another.`);
    }
    throw new OperatorError(`${join(folder, backupFile)} is damaged or unreadable. Use another backup.`);
  }
  refuseNewer(`The backup ${folder}`, backup.manifest, 'Use that version or a newer one.');
  if (!backup.manifest.complete) {
    throw new OperatorError(
      `The backup ${folder} is of a server that had not completed its first start: a start would empty it. Use another.`,
    );
  }
  for (const { path, bytes } of backup.files) {
    const size = plainSizeOf(folder, path);
    if (size === bytes) continue;
    throw new OperatorError(
      `The backup ${folder} is not whole: ${path} ${size === undefined ? 'is missing' : `has ${size} of ${bytes} bytes`}. Use another.`,
    );
  }
  return backup;
}

/** True if a file of a backup still matches its digest. */
export async function isUnchanged(folder: string, file: BackupFile): Promise<boolean> {
  return (await digestOf(contentOf(folder, file))).sha256 === file.sha256;
}

/**
 * Returns the size of a backup's file; undefined if it is missing. A backup may come from anywhere: a link leads to
 * files that are not its own, a pipe or a device has no end.
 * @throws OperatorError if it is not a regular file, or behind a link.
 */
function plainSizeOf(folder: string, path: string): number | undefined {
  const file = join(folder, path);
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if (found.isFile() && realpathSync(file) === join(realpathSync(folder), path)) return found.size;
  throw new OperatorError(`The backup ${folder} is not whole: ${path} is not a regular file. Use another.`);
}

/** Reads a backup's file to the size that its manifest says, whatever has become of it since that was compared. */
function contentOf(folder: string, { path, bytes }: BackupFile): ReadStream {
  return createReadStream(join(folder, path), { highWaterMark: 1024 * 1024, end: bytes - 1 });
}

/**
 * Restores a backup into an empty folder. The manifest is written last, after `change`: without it no server accepts the
 * folder.
 * @throws OperatorError if a file does not match its digest.
 */
export async function restoreBackup(
  folder: string,
  backup: BackupManifest,
  target: string,
  onBytes: (bytes: number) => void,
  change: () => Promise<void> = async () => {},
): Promise<void> {
  for (const file of backup.files) {
    const { path, sha256 } = file;
    const copy = join(target, path);
    mkdirSync(dirname(copy), { recursive: true, mode: 0o700 });
    const digest = createHash('sha256');
    const handle = await openFile(copy, 'wx', 0o600);
    await pipeline(
      contentOf(folder, file),
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          digest.update(chunk);
          onBytes(chunk.length);
          yield chunk;
        }
      },
      handle.createWriteStream(),
    );
    if (digest.digest('hex') !== sha256) {
      throw new OperatorError(
        `the backup was changed since it was written (${path} does not match its digest). Use another`,
      );
    }
  }
  await sync(target, backup.files);
  await change();
  // Another data folder than the one that the backup is of, which may live on.
  const { id: _, ...manifest } = backup.manifest;
  writeDurable(join(target, manifestFile), manifest, 0o644);
}

/** Syncs files and all folders on the way to them. */
async function sync(folder: string, files: readonly BackupFile[]): Promise<void> {
  const folders = new Set<string>();
  for (const { path } of files) {
    const handle = await openFile(join(folder, path), 'r+');
    await handle.sync();
    await handle.close();
    for (let at = dirname(path); at !== '.'; at = dirname(at)) folders.add(at);
  }
  for (const one of folders) syncPath(join(folder, one));
  syncPath(folder);
  syncPath(dirname(folder));
}

async function digestOf(content: ReadStream): Promise<{ bytes: number; sha256: string }> {
  const digest = createHash('sha256');
  let bytes = 0;
  for await (const chunk of content) {
    digest.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  return { bytes, sha256: digest.digest('hex') };
}

function isWhole({ manifest, files }: BackupManifest): boolean {
  const journals = files.map(journalOf).filter((name) => name !== undefined);
  const others = files.length - journals.length;
  return (
    files.every(isBackupFile) &&
    journals.length === journalNames.length &&
    new Set(journals).size === journals.length &&
    others === manifest.shards + 1
  );
}

function journalOf({ path }: BackupFile): JournalName | undefined {
  return journalNames.find((name) => path === join(name, recordsFile));
}

/** The manifest is untrusted: a path must not leave the folder. */
function isBackupFile({ path, bytes, sha256 }: BackupFile): boolean {
  return (
    /^([a-z0-9-]+\/)+data\.mdb$/.test(path) &&
    Number.isInteger(bytes) &&
    bytes > 0 &&
    typeof sha256 === 'string'
  );
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}
